package tract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
	"github.com/tract-vcs/tract/secrets"
)

// Scan is where to look for secrets.
type Scan struct {
	Rev      string   // a revision or a range A..B; empty: everything that a ref leads to or ever led to
	Rules    []string // only these; nil: all
	Progress func(done, total int64)
}

// Leak is a secret that is stored. The words of several commits may be one object: it
// is told of the first of them that is looked at.
type Leak struct {
	secrets.Finding                // where it is in the text that Where names
	Commit          *commit.Commit // as Show gives it
	Object          objects.ID     // that holds it
	Where           string         // content, label, meta NAME, origin, request, tools, description, author, branch name, tag name
	Sealed          bool           // a seal covers it
	Open            bool           // and an open tool loop needs the seal
}

// What holds a secret, in Leak.Where.
const (
	inContent     = "content"
	inLabel       = "label"
	inOrigin      = "origin"
	inRequest     = "request"
	inTools       = "tools"
	inDescription = "description"
	inAuthor      = "author"
	inBranch      = "branch name"
	inTag         = "tag name"
)

// Scan yields the secrets of a history, newest commit first: in what was said, in
// labels, in what is known of where it came from, in how models were asked, in the
// definitions of tools, in the names of authors. What a model was shown to write a
// summary is looked at too, and without a revision the names of branches and tags and
// what branches are said to be about, with their last commit. What was erased has no words. Of what cannot be read there is a *[DamagedError],
// with a leak that has only the commit; any other error is the last element.
func (r *Repo) Scan(ctx context.Context, s Scan) iter.Seq2[Leak, error] {
	return func(yield func(Leak, error) bool) {
		k := &scanning{Scan: s, repo: r, seen: map[objects.ID]bool{}, names: map[string]bool{}, yield: yield}
		err := k.begin(ctx)
		if err == nil {
			err = k.walk(ctx)
		}
		if err == nil && k.Rev == "" {
			err = k.descriptions(ctx)
		}
		if err != nil && !k.left {
			yield(Leak{}, fmt.Errorf("scan: %w", err))
		}
	}
}

// scanning is a Scan on its way.
type scanning struct {
	Scan
	repo        *Repo
	tips        []objects.ID
	stop        []objects.ID
	done, total int64
	seen        map[objects.ID]bool // objects that hold words
	names       map[string]bool     // of authors
	open        map[objects.ID]bool // contents of open turns; nil before the first sealed secret
	yield       func(Leak, error) bool
	left        bool // nobody wants more
}

func (k *scanning) begin(ctx context.Context) error {
	if k.Rev != "" {
		from, to, err := k.repo.resolver().Range(ctx, k.Rev)
		if err != nil {
			return err
		}
		k.tips, k.stop = []objects.ID{to}, []objects.ID{from}
	} else {
		tips, err := k.repo.tips(ctx)
		if err != nil {
			return err
		}
		k.tips = tips
	}
	for _, tip := range k.tips {
		c, err := k.repo.header(ctx, tip)
		if err != nil {
			return err
		}
		k.total += int64(c.Depth) + 1
	}
	return nil
}

func (k *scanning) walk(ctx context.Context) error {
	commits := k.repo.loaded(ctx, k.repo.ever(ctx), 0)
	if k.Rev != "" {
		commits = k.repo.history(ctx, k.tips, k.stop, new(call))
	}
	for c, err := range commits {
		if c == nil {
			return err
		}
		if err := k.looked(ctx, c, err); err != nil || k.left {
			return err
		}
		if k.done++; k.Progress != nil {
			k.Progress(k.done, max(k.total, k.done))
		}
	}
	return nil
}

// looked looks at a commit of which damaged cannot be read, and goes on after damage.
func (k *scanning) looked(ctx context.Context, c *commit.Commit, damaged error) error {
	err := k.commit(ctx, c)
	if isDamage(err) && damaged == nil {
		err, damaged = nil, &DamagedError{Commit: c.ID, Cause: err}
	}
	if damaged != nil && !k.left {
		k.left = !k.yield(Leak{Commit: c}, fmt.Errorf("scan: %w", damaged))
	}
	return err
}

// first tells whether an object is one that was not looked at yet.
func (k *scanning) first(id objects.ID) bool {
	if id.IsZero() || k.seen[id] {
		return false
	}
	k.seen[id] = true
	return true
}

// commit looks at one commit and what it links to.
func (k *scanning) commit(ctx context.Context, c *commit.Commit) error {
	if c.Block != nil && c.Erased == nil && k.first(c.Content) {
		leak := Leak{Commit: c, Object: c.Content, Where: inContent, Sealed: !c.Block.Form().Seal.IsZero()}
		var failed error
		content.Rewritten(c.Block, func(s string) string {
			if err := k.text(ctx, leak, s); err != nil {
				failed = err
			}
			return s
		})
		if failed != nil {
			return failed
		}
	}
	if k.first(c.Label) {
		if err := k.text(ctx, Leak{Commit: c, Object: c.Label, Where: inLabel}, c.Words.Text); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(c.Words.Meta)) {
			if err := k.text(ctx, Leak{Commit: c, Object: c.Label, Where: "meta " + name}, c.Words.Meta[name]); err != nil {
				return err
			}
		}
	}
	if err := k.author(ctx, c, c.Author); err != nil {
		return err
	}
	if c.From != nil && k.first(c.Origin) {
		return k.origin(ctx, c)
	}
	return nil
}

// origin looks at where a commit came from.
func (k *scanning) origin(ctx context.Context, c *commit.Commit) error {
	from := Leak{Commit: c, Object: c.Origin, Where: inOrigin}
	said := []string{c.From.Finish, string(c.From.Usage.Raw)}
	for _, name := range slices.Sorted(maps.Keys(c.From.Original)) {
		said = append(said, c.From.Original[name])
	}
	for _, s := range said {
		if err := k.text(ctx, from, s); err != nil {
			return err
		}
	}
	if !k.first(c.From.Manifest) {
		return nil
	}
	return k.request(ctx, c)
}

// request looks at what the request of a reply was made of.
func (k *scanning) request(ctx context.Context, c *commit.Commit) error {
	m, err := compile.ReadManifest(ctx, k.repo.store, c.From.Manifest)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m.Asked)) {
		if err := k.text(ctx, Leak{Commit: c, Object: c.From.Manifest, Where: inRequest}, m.Asked[name]); err != nil {
			return err
		}
	}
	if k.first(m.Tools) {
		tools, err := objects.Read(ctx, k.repo.store, m.Tools)
		if err != nil && !errors.Is(err, objects.ErrErased) {
			return err
		}
		if err := k.text(ctx, Leak{Commit: c, Object: m.Tools, Where: inTools}, string(tools.Data)); err != nil {
			return err
		}
	}
	if c.Op != commit.Compress && c.Kind != content.KindSummary {
		return nil
	}
	for asked, err := range k.repo.loaded(ctx, commit.Walk(ctx, k.repo.store, m.Head, 0), 0) {
		if asked == nil {
			return err
		}
		if err := k.looked(ctx, asked, err); err != nil || k.left {
			return err
		}
	}
	return nil
}

// text looks at one text.
func (k *scanning) text(ctx context.Context, leak Leak, s string) error {
	if k.left {
		return nil
	}
	for _, f := range secrets.Find(s) {
		if len(k.Rules) > 0 && !slices.Contains(k.Rules, f.Rule) {
			continue
		}
		leak.Finding = f
		if leak.Sealed {
			open, err := k.isOpen(ctx, leak.Object)
			if err != nil {
				return err
			}
			leak.Open = open
		}
		if k.left = !k.yield(leak, nil); k.left {
			return nil
		}
	}
	return nil
}

// isOpen reports whether content is part of an open turn.
func (k *scanning) isOpen(ctx context.Context, id objects.ID) (bool, error) {
	if k.open == nil {
		turns, err := k.repo.openTurns(ctx)
		if err != nil {
			return false, err
		}
		k.open = map[objects.ID]bool{}
		for _, c := range turns {
			k.open[c.Content] = true
		}
	}
	return k.open[id], nil
}

// descriptions looks at what branches are said to be about, or ever were, and at the
// names in the log of refs.
func (k *scanning) descriptions(ctx context.Context) error {
	log, err := k.repo.store.Log(ctx, "", 0, 0)
	if err != nil {
		return err
	}
	tips := map[string]objects.ID{} // the last ones
	for _, entry := range log {
		for _, u := range entry.Refs {
			if tips[u.Name].IsZero() {
				tips[u.Name] = cmp.Or(u.New, u.Old)
			}
		}
	}
	if err := k.refNames(ctx, log, tips); err != nil {
		return err
	}
	for _, entry := range log {
		for _, u := range entry.Refs {
			name, is := strings.CutPrefix(u.Name, refs.Describe)
			if !is || k.left || !k.first(u.New) {
				continue
			}
			if err := k.description(ctx, u.New, tips[refs.Heads+name]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *scanning) description(ctx context.Context, id, tip objects.ID) error {
	label, err := commit.ReadLabel(ctx, k.repo.store, id)
	if errors.Is(err, objects.ErrNotFound) || err == nil && len(secrets.Find(label.Text)) == 0 {
		return nil // gc took it away, or nothing is in it
	}
	if err != nil {
		return err
	}
	c, err := k.repo.Show(ctx, tip.String())
	if errors.Is(err, objects.ErrNotFound) { // there is no such branch
		c, err = &commit.Commit{}, nil
	}
	if err != nil {
		return err
	}
	return k.text(ctx, Leak{Commit: c, Object: id, Where: inDescription}, label.Text)
}
