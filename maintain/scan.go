package maintain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/objects"
)

// ScanOptions is where [Scan] looks for secrets.
type ScanOptions struct {
	Rev      string   // a revision or a range A..B; empty: everything that a ref leads to or ever led to
	Rules    []string // only these; nil: all
	Progress func(done, total int64)
}

// Leak is a secret that is stored. Several commits may share the object that holds it: the
// Leak has the first of them that is scanned.
type Leak struct {
	Rule       string         // that found it
	Start, End int            // where it is in the text that Where names, in bytes
	Line       int            // of the text, that it begins on, from 1
	Excerpt    string         // its surroundings, with every secret in them masked
	Commit     *commit.Commit // with its content, origin and label
	Object     objects.ID     // that holds it
	Where      string         // content, label, meta NAME, origin, request, tools, description, author, branch name, tag name
	Sealed     bool           // a seal covers it
	Open       bool           // and an open tool loop needs the seal
}

// Named reports whether a leak is in the name of a branch, a tag or an author. Names are
// part of commits and of the ref log, and stay.
func (l *Leak) Named() bool { return l.Where == inAuthor || l.Where == inBranch || l.Where == inTag }

// Purgeable reports whether [Purge] can remove what a leak is in. Origins and requests, on
// which every proof rests, stay; so do names.
func (l *Leak) Purgeable() bool {
	return l.Where != inOrigin && l.Where != inRequest && !l.Named()
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

// Scan yields the secrets of a history, newest commit first: in content, labels, origins,
// requests, the definitions of tools and the names of authors. It looks at the input of
// models that wrote a summary too and, without a revision, at the names of branches and
// tags and at the descriptions of branches, with their last commit. Purged content has no
// secrets. For a damaged commit the error is a *[commit.DamagedError], with a Leak that has
// only the commit; any other error is the last element.
func Scan(ctx context.Context, repo *tract.Repo, o ScanOptions) iter.Seq2[Leak, error] {
	return func(yield func(Leak, error) bool) {
		k := &scanner{ScanOptions: o, repo: repo, store: repo.Store(), seen: map[objects.ID]bool{}, names: map[string]bool{}, yield: yield}
		err := k.walk(ctx)
		if err == nil && k.Rev == "" {
			err = k.scanRefs(ctx)
		}
		if err = cmp.Or(err, k.failed); err != nil && !k.stopped {
			yield(Leak{}, fmt.Errorf("scan: %w", err))
		}
	}
}

// scanner is one Scan.
type scanner struct {
	ScanOptions
	repo    *tract.Repo
	store   objects.Store
	seen    map[objects.ID]bool // objects that hold text
	names   map[string]bool     // of authors
	open    map[objects.ID]bool // contents of open turns; nil before the first sealed secret
	yield   func(Leak, error) bool
	stopped bool  // the caller wants no more
	failed  error // of reading the open turns: nothing more is scanned
}

// commits returns the commits to scan, and about how many they are.
func (k *scanner) commits(ctx context.Context) (commits iter.Seq2[*commit.Commit, error], total int64, err error) {
	commits = everReachable(ctx, k.store)
	tips, err := history.Tips(ctx, k.store)
	if k.Rev != "" {
		var from, to objects.ID
		from, to, err = refs.Resolver{Store: k.store, Now: time.Now}.Range(ctx, k.Rev)
		tips = []objects.ID{to}
		commits = commit.History(ctx, k.store, tips, []objects.ID{from})
	}
	for i := 0; i < len(tips) && err == nil; i++ {
		var c *commit.Commit
		if c, err = commit.Read(ctx, k.store, tips[i]); err == nil {
			total += int64(c.Depth) + 1
		}
	}
	return commits, total, err
}

func (k *scanner) walk(ctx context.Context) error {
	commits, total, err := k.commits(ctx)
	if err != nil {
		return err
	}
	done := int64(0)
	for c, err := range history.LoadSeq(ctx, k.store, commits, 0) {
		if c == nil {
			return err
		}
		if err := k.scan(ctx, c, err); err != nil || k.ended() {
			return err
		}
		if done++; k.Progress != nil {
			k.Progress(done, max(total, done))
		}
	}
	return nil
}

// ended reports whether nothing more is to be scanned.
func (k *scanner) ended() bool { return k.stopped || k.failed != nil }

// scan scans a commit, and continues after damage. damaged is the error of reading it.
func (k *scanner) scan(ctx context.Context, c *commit.Commit, damaged error) error {
	err := k.commit(ctx, c)
	if history.IsDamaged(err) && damaged == nil {
		err, damaged = nil, &commit.DamagedError{Commit: c.ID, Cause: err}
	}
	if damaged != nil && !k.stopped {
		k.stopped = !k.yield(Leak{Commit: c}, fmt.Errorf("scan: %w", damaged))
	}
	return err
}

// firstVisit reports whether an object was not scanned yet.
func (k *scanner) firstVisit(id objects.ID) bool {
	if id.IsZero() || k.seen[id] {
		return false
	}
	k.seen[id] = true
	return true
}

// commit scans one commit and what it links to.
func (k *scanner) commit(ctx context.Context, c *commit.Commit) error {
	if c.Block != nil && c.Tombstone == nil && k.firstVisit(c.ContentID) {
		leak := Leak{Commit: c, Object: c.ContentID, Where: inContent, Sealed: !c.Block.Form().Seal.IsZero()}
		content.RewriteText(c.Block, func(s string) string {
			k.text(ctx, leak, s)
			return s
		})
	}
	if k.firstVisit(c.LabelID) {
		k.text(ctx, Leak{Commit: c, Object: c.LabelID, Where: inLabel}, c.Label.Text)
		for _, name := range slices.Sorted(maps.Keys(c.Label.Meta)) {
			k.text(ctx, Leak{Commit: c, Object: c.LabelID, Where: "meta " + name}, c.Label.Meta[name])
		}
	}
	k.author(ctx, c, c.Author)
	if c.Origin == nil || !k.firstVisit(c.OriginID) {
		return nil
	}
	from := Leak{Commit: c, Object: c.OriginID, Where: inOrigin}
	k.text(ctx, from, c.Origin.Finish)
	k.text(ctx, from, string(c.Origin.Usage.Raw))
	k.values(ctx, from, c.Origin.Original)
	if !k.firstVisit(c.Origin.Manifest) {
		return nil
	}
	return k.request(ctx, c)
}

// values scans the values of a map.
func (k *scanner) values(ctx context.Context, leak Leak, m map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		k.text(ctx, leak, m[name])
	}
}

// request scans what the request of a response was made of.
func (k *scanner) request(ctx context.Context, c *commit.Commit) error {
	m, err := compile.ReadManifest(ctx, k.store, c.Origin.Manifest)
	if err != nil {
		return err
	}
	k.values(ctx, Leak{Commit: c, Object: c.Origin.Manifest, Where: inRequest}, m.RequestSettings)
	if k.firstVisit(m.Tools) {
		tools, err := objects.Read(ctx, k.store, m.Tools)
		if err != nil && !errors.Is(err, objects.ErrPurged) {
			return err
		}
		k.text(ctx, Leak{Commit: c, Object: m.Tools, Where: inTools}, string(tools.Data))
	}
	if c.Op != commit.Compress && c.Kind != content.KindSummary {
		return nil
	}
	for asked, err := range history.LoadSeq(ctx, k.store, commit.Walk(ctx, k.store, m.Head, 0), 0) {
		if asked == nil {
			return err
		}
		if err := k.scan(ctx, asked, err); err != nil || k.ended() {
			return err
		}
	}
	return nil
}

// text scans one text, unless the scan has ended.
func (k *scanner) text(ctx context.Context, leak Leak, s string) {
	if k.ended() {
		return
	}
	for _, f := range secrets.Find(s) {
		if len(k.Rules) > 0 && !slices.Contains(k.Rules, f.Rule) {
			continue
		}
		leak.Rule, leak.Start, leak.End, leak.Line, leak.Excerpt = f.Rule, f.Start, f.End, f.Line, f.Excerpt
		leak.Open = leak.Sealed && k.isOpen(ctx, leak.Object)
		if k.failed != nil {
			return
		}
		if k.stopped = !k.yield(leak, nil); k.stopped {
			return
		}
	}
}

// isOpen reports whether content is part of an open turn.
func (k *scanner) isOpen(ctx context.Context, id objects.ID) bool {
	if k.open == nil {
		k.open = map[objects.ID]bool{}
		var turns map[objects.ID]*commit.Commit
		turns, k.failed = openTurns(ctx, k.store)
		for _, c := range turns {
			k.open[c.ContentID] = true
		}
	}
	return k.open[id]
}

// author scans the name of an author, each once.
func (k *scanner) author(ctx context.Context, c *commit.Commit, name string) {
	if !k.names[name] {
		k.names[name] = true
		k.text(ctx, Leak{Commit: c, Object: c.ID, Where: inAuthor}, name)
	}
}

// scanRefs scans the names that branches and tags have or had, the authors in the ref log,
// and the present and former descriptions of branches.
func (k *scanner) scanRefs(ctx context.Context) error {
	log, err := k.store.Log(ctx, "", 0, 0)
	if err != nil {
		return err
	}
	tips := map[string]objects.ID{} // the last ones
	for _, entry := range log {
		for _, u := range entry.Refs {
			if tips[u.Name].IsZero() {
				tips[u.Name] = cmp.Or(u.New, u.Old)
				k.refName(ctx, u.Name, tips[u.Name], entry.Note.Author)
			}
		}
	}
	for _, entry := range log {
		for _, u := range entry.Refs {
			name, is := strings.CutPrefix(u.Name, refs.Describe)
			if !is || k.ended() || !k.firstVisit(u.New) {
				continue
			}
			if err := k.description(ctx, u.New, tips[refs.Heads+name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// refName scans the name of a branch or a tag, and the author who moved it last to tip.
func (k *scanner) refName(ctx context.Context, ref string, tip objects.ID, author string) {
	where := inBranch
	name, is := strings.CutPrefix(ref, refs.Heads)
	if !is {
		where = inTag
		name, is = strings.CutPrefix(ref, refs.Tags)
	}
	if is {
		c := &commit.Commit{ID: tip}
		k.text(ctx, Leak{Commit: c, Object: tip, Where: where}, name)
		k.author(ctx, c, author)
	}
}

func (k *scanner) description(ctx context.Context, id, tip objects.ID) error {
	label, err := commit.ReadLabel(ctx, k.store, id)
	if errors.Is(err, objects.ErrNotFound) || err == nil && len(secrets.Find(label.Text)) == 0 {
		return nil // gc removed it, or it has no secret
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
	k.text(ctx, Leak{Commit: c, Object: id, Where: inDescription}, label.Text)
	return nil
}
