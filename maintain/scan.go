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
	"github.com/tract-vcs/tract/internal/requestbody"
	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/objects"
)

// ScanOptions are the options of [Scan].
type ScanOptions struct {
	Rev      string   // a revision or a range A..B; empty: all commits that a ref leads to or ever led to
	Rules    []string // only secrets that these rules find; nil: all rules
	Progress func(done, total int64)
}

// Leak is a stored secret. Several commits may share the object that contains it: Commit is the
// first of them that is scanned.
type Leak struct {
	Rule       string         // the rule that found the secret
	Start, End int            // byte offsets of the secret in the text that Where names
	Line       int            // the line of the text on which the secret begins, from 1
	Excerpt    string         // the surrounding text, with every secret in it masked
	Commit     *commit.Commit // with its content, origin and label
	Object     objects.ID     // the object that contains the secret
	Where      string         // content, label, meta NAME, origin, request, tools, body, description, author, branch name, tag name
	Sealed     bool           // a seal covers the secret
	Open       bool           // an open tool loop needs the seal
}

// Named reports whether a leak is in the name of a branch, a tag or an author. Names are part of
// commits and of the ref log, so they cannot be purged.
func (l *Leak) Named() bool { return l.Where == inAuthor || l.Where == inBranch || l.Where == inTag }

// Purgeable reports whether [Purge] can remove the object that contains a leak. It cannot remove
// origins and requests, which prove what was sent, nor names.
func (l *Leak) Purgeable() bool {
	return l.Where != inOrigin && l.Where != inRequest && !l.Named()
}

// The values of Leak.Where, besides "meta NAME".
const (
	inContent     = "content"
	inLabel       = "label"
	inOrigin      = "origin"
	inRequest     = "request"
	inTools       = "tools"
	inBody        = "body"
	inDescription = "description"
	inAuthor      = "author"
	inBranch      = "branch name"
	inTag         = "tag name"
)

// Scan yields the secrets of a history, newest commit first: those in content, labels, origins,
// requests and their stored bodies, the definitions of tools and the names of authors. It also
// scans the transcripts that models received to write summaries and, without a revision, the names
// of branches and tags and the descriptions of branches. Purged content has no secrets. For a
// damaged commit the error is a *[commit.DamagedError], with a Leak that has only the commit; any
// other error is the last element.
func Scan(ctx context.Context, repo *tract.Repo, o ScanOptions) iter.Seq2[Leak, error] {
	return func(yield func(Leak, error) bool) {
		k := &scanner{ScanOptions: o, repo: repo, store: repo.Store(), seen: map[objects.ID]bool{}, scannedAuthors: map[string]bool{}, yield: yield}
		err := k.scanHistory(ctx)
		if err == nil && k.Rev == "" {
			err = k.scanRefNamesAuthorsAndDescriptions(ctx)
		}
		if err = cmp.Or(err, k.turnsErr); err != nil && !k.stopped {
			yield(Leak{}, fmt.Errorf("scan: %w", err))
		}
	}
}

// scanner is the state of one Scan.
type scanner struct {
	ScanOptions
	repo             *tract.Repo
	store            objects.Store
	seen             map[objects.ID]bool // the objects that were scanned
	scannedAuthors   map[string]bool     // the names of authors that were scanned
	lastTurnContents map[objects.ID]bool // contents of the last turns with tools; nil before the first sealed secret
	yield            func(Leak, error) bool
	stopped          bool  // yield returned false
	turnsErr         error // the error of reading the last turns, which ends the scan
}

// commitsToScan returns the commits to scan, and their approximate number.
func (k *scanner) commitsToScan(ctx context.Context) (commits iter.Seq2[*commit.Commit, error], total int64, err error) {
	var tips []objects.ID
	if k.Rev == "" {
		commits = everReachable(ctx, k.store)
		tips, err = history.Tips(ctx, k.store)
	} else {
		var from, to objects.ID
		from, to, err = refs.Resolver{Store: k.store, Now: time.Now}.Range(ctx, k.Rev)
		tips = []objects.ID{to}
		commits = commit.History(ctx, k.store, tips, []objects.ID{from})
	}
	if err != nil {
		return nil, 0, err
	}
	headers, err := commit.ReadHeaders(ctx, k.store, tips)
	for _, c := range headers {
		total += int64(c.Depth) + 1
	}
	return commits, total, err
}

// scanHistory scans the commits and reports progress.
func (k *scanner) scanHistory(ctx context.Context) error {
	commits, total, err := k.commitsToScan(ctx)
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

// ended reports whether the scan has ended.
func (k *scanner) ended() bool { return k.stopped || k.turnsErr != nil }

// scan scans a commit. It yields damage of the commit and returns only other errors. loadErr is
// the error of loading the commit.
func (k *scanner) scan(ctx context.Context, c *commit.Commit, loadErr error) error {
	err := k.scanCommit(ctx, c)
	if history.IsDamaged(err) && loadErr == nil {
		err, loadErr = nil, &commit.DamagedError{Commit: c.ID, Cause: err}
	}
	if loadErr != nil && !k.stopped {
		k.stopped = !k.yield(Leak{Commit: c}, fmt.Errorf("scan: %w", loadErr))
	}
	return err
}

// visit marks an object as visited, and reports whether this is its first visit.
func (k *scanner) visit(id objects.ID) (first bool) {
	if id.IsZero() || k.seen[id] {
		return false
	}
	k.seen[id] = true
	return true
}

// scanCommit scans one commit and the objects that it links to.
func (k *scanner) scanCommit(ctx context.Context, c *commit.Commit) error {
	if c.Block != nil && c.Tombstone == nil && k.visit(c.ContentID) {
		leak := Leak{Commit: c, Object: c.ContentID, Where: inContent, Sealed: !c.Block.Form().Seal.IsZero()}
		content.RewriteText(c.Block, func(s string) string {
			k.scanText(ctx, leak, s)
			return s
		})
	}
	if k.visit(c.LabelID) {
		k.scanText(ctx, Leak{Commit: c, Object: c.LabelID, Where: inLabel}, c.Label.Text)
		for _, name := range slices.Sorted(maps.Keys(c.Label.Meta)) {
			k.scanText(ctx, Leak{Commit: c, Object: c.LabelID, Where: "meta " + name}, c.Label.Meta[name])
		}
	}
	k.scanAuthor(ctx, c, c.Author)
	if c.Origin == nil || !k.visit(c.OriginID) {
		return nil
	}
	from := Leak{Commit: c, Object: c.OriginID, Where: inOrigin}
	k.scanText(ctx, from, c.Origin.Finish)
	k.scanText(ctx, from, string(c.Origin.Usage.Raw))
	k.scanValues(ctx, from, c.Origin.Original)
	if !k.visit(c.Origin.Manifest) {
		return nil
	}
	return k.scanRequest(ctx, c)
}

// scanValues scans the values of a map.
func (k *scanner) scanValues(ctx context.Context, leak Leak, m map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		k.scanText(ctx, leak, m[name])
	}
}

// scanRequest scans the settings and the tool definitions of the request that a commit came from;
// for a summary also the transcript.
func (k *scanner) scanRequest(ctx context.Context, c *commit.Commit) error {
	m, err := compile.ReadManifest(ctx, k.store, c.Origin.Manifest)
	if err != nil {
		return err
	}
	k.scanValues(ctx, Leak{Commit: c, Object: c.Origin.Manifest, Where: inRequest}, m.RequestSettings)
	if k.visit(m.Tools) {
		tools, err := objects.Read(ctx, k.store, m.Tools)
		if err != nil && !errors.Is(err, objects.ErrPurged) {
			return err
		}
		k.scanText(ctx, Leak{Commit: c, Object: m.Tools, Where: inTools}, string(tools.Data))
	}
	if err := k.scanBody(ctx, c, m.Body); err != nil {
		return err
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

// scanBody scans the body of the recorded request that a commit came from.
func (k *scanner) scanBody(ctx context.Context, c *commit.Commit, id objects.ID) error {
	if !k.visit(id) {
		return nil
	}
	b, err := requestbody.Read(ctx, k.store, id)
	if errors.Is(err, objects.ErrPurged) {
		return nil
	}
	if err == nil {
		k.scanText(ctx, Leak{Commit: c, Object: id, Where: inBody}, string(b.Data))
	}
	return err
}

// scanText yields the secrets in one text as leaks with the fields of leak, unless the scan has
// ended.
func (k *scanner) scanText(ctx context.Context, leak Leak, text string) {
	if k.ended() {
		return
	}
	for _, f := range secrets.Find(text) {
		if len(k.Rules) > 0 && !slices.Contains(k.Rules, f.Rule) {
			continue
		}
		leak.Rule, leak.Start, leak.End, leak.Line, leak.Excerpt = f.Rule, f.Start, f.End, f.Line, f.Excerpt
		leak.Open = leak.Sealed && k.isInLastToolTurn(ctx, leak.Object)
		if k.turnsErr != nil {
			return
		}
		if k.stopped = !k.yield(leak, nil); k.stopped {
			return
		}
	}
}

// isInLastToolTurn reports whether content is part of the last turn with tools of a branch or
// of a rescued response.
func (k *scanner) isInLastToolTurn(ctx context.Context, contentID objects.ID) bool {
	if k.lastTurnContents == nil {
		k.lastTurnContents = map[objects.ID]bool{}
		var turns map[objects.ID]*commit.Commit
		turns, k.turnsErr = commitsOfLastToolTurns(ctx, k.store)
		for _, c := range turns {
			k.lastTurnContents[c.ContentID] = true
		}
	}
	return k.lastTurnContents[contentID]
}

// scanAuthor scans the name of an author, each name once.
func (k *scanner) scanAuthor(ctx context.Context, c *commit.Commit, name string) {
	if !k.scannedAuthors[name] {
		k.scannedAuthors[name] = true
		k.scanText(ctx, Leak{Commit: c, Object: c.ID, Where: inAuthor}, name)
	}
}

// scanRefNamesAuthorsAndDescriptions scans the names that branches and tags have or had, the authors in the ref log,
// and the present and former descriptions of branches.
func (k *scanner) scanRefNamesAuthorsAndDescriptions(ctx context.Context) error {
	tips := map[string]objects.ID{}      // the last target of each ref
	var descriptions []objects.RefUpdate // scanned after the log, which has the tip of the branch
	for entry, err := range refs.Log(ctx, k.store, "") {
		if err != nil {
			return err
		}
		for _, u := range entry.Refs {
			if tips[u.Name].IsZero() {
				tips[u.Name] = cmp.Or(u.New, u.Old)
				k.scanRefNameAndAuthor(ctx, u.Name, tips[u.Name], entry.Note.Author)
			}
			if strings.HasPrefix(u.Name, refs.Describe) {
				descriptions = append(descriptions, u)
			}
		}
	}
	for _, u := range descriptions {
		if k.ended() || !k.visit(u.New) {
			continue
		}
		if err := k.scanBranchDescription(ctx, u.New, tips[refs.Heads+strings.TrimPrefix(u.Name, refs.Describe)]); err != nil {
			return err
		}
	}
	return nil
}

// scanRefNameAndAuthor scans the name of a branch or a tag, and the author of its last move. tip is
// the last target of the ref.
func (k *scanner) scanRefNameAndAuthor(ctx context.Context, ref string, tip objects.ID, author string) {
	where := inBranch
	name, is := strings.CutPrefix(ref, refs.Heads)
	if !is {
		where = inTag
		name, is = strings.CutPrefix(ref, refs.Tags)
	}
	if is {
		c := &commit.Commit{ID: tip}
		k.scanText(ctx, Leak{Commit: c, Object: tip, Where: where}, name)
		k.scanAuthor(ctx, c, author)
	}
}

// scanBranchDescription scans the description of a branch, the label id. tip is the branch's last
// commit.
func (k *scanner) scanBranchDescription(ctx context.Context, id, tip objects.ID) error {
	label, err := commit.ReadLabel(ctx, k.store, id)
	if errors.Is(err, objects.ErrNotFound) || err == nil && len(secrets.Find(label.Text)) == 0 {
		return nil // gc removed it, or it has no secret
	}
	if err != nil {
		return err
	}
	c, err := k.repo.Show(ctx, tip.String())
	if errors.Is(err, objects.ErrNotFound) { // the branch's commit is missing
		c, err = &commit.Commit{}, nil
	}
	if err != nil {
		return err
	}
	k.scanText(ctx, Leak{Commit: c, Object: id, Where: inDescription}, label.Text)
	return nil
}
