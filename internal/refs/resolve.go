package refs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/suggest"
	"github.com/tract-vcs/tract/objects"
)

// Store is what a Resolver reads.
type Store interface {
	objects.Reader
	objects.RefReader
}

// Resolver resolves revisions. Any number of goroutines may use it.
type Resolver struct {
	Store Store
	Head  string // the branch, or the id, that HEAD means; empty: HEAD means nothing
	Now   func() time.Time
}

const (
	minPrefix  = 4 // fewest digits of an abbreviated id
	candidates = 8 // most ids that an ambiguous one lists
)

// Resolve returns the commit that rev names. When it names none, the error is an
// *[UnknownError]; when its digits begin several ids, it is an *[AmbiguousError].
func (r Resolver) Resolve(ctx context.Context, rev string) (objects.ID, error) {
	return r.resolve(ctx, rev, objects.KindCommit)
}

// Object is Resolve for objects of any kind.
func (r Resolver) Object(ctx context.Context, rev string) (objects.ID, error) {
	return r.resolve(ctx, rev, 0)
}

// Range splits "A..B" and resolves both sides; an empty side is HEAD. Without "..", from is
// zero.
func (r Resolver) Range(ctx context.Context, spec string) (from, to objects.ID, err error) {
	a, b, isRange := strings.Cut(spec, "..")
	if !isRange || strings.HasPrefix(spec, ":/") {
		to, err = r.Resolve(ctx, spec)
		return objects.ID{}, to, err
	}
	if from, err = r.Resolve(ctx, orHead(a)); err == nil {
		to, err = r.Resolve(ctx, orHead(b))
	}
	return from, to, err
}

func orHead(rev string) string {
	if rev == "" {
		return "HEAD"
	}
	return rev
}

func (r Resolver) resolve(ctx context.Context, rev string, kind objects.Kind) (objects.ID, error) {
	if text, ok := strings.CutPrefix(rev, ":/"); ok {
		return r.findText(ctx, text)
	}
	base, steps := splitSteps(rev)
	id, err := r.resolveBase(ctx, rev, base, kind)
	for i := 0; err == nil && i < len(steps); i++ {
		id, err = r.applyStep(ctx, rev, id, steps[i])
	}
	return id, err
}

// splitSteps splits "main~2^{turn}" into "main" and "~2", "^{turn}".
func splitSteps(rev string) (base string, steps []string) {
	at := strings.IndexAny(rev, "~^")
	if at < 0 {
		return rev, nil
	}
	base, rest := rev[:at], rev[at:]
	for rest != "" {
		n := strings.IndexAny(rest[1:], "~^") + 1
		if n == 0 {
			n = len(rest)
		}
		steps = append(steps, rest[:n])
		rest = rest[n:]
	}
	return base, steps
}

// resolveBase returns what a revision without steps names. rev is the whole revision, for errors.
func (r Resolver) resolveBase(ctx context.Context, rev, base string, kind objects.Kind) (objects.ID, error) {
	if name, when, ok := strings.Cut(base, "@{"); ok && strings.HasSuffix(when, "}") {
		return r.resolveRefAt(ctx, rev, name, strings.TrimSuffix(when, "}"))
	}
	if base == "@" {
		base = "HEAD"
	}
	if base == "HEAD" {
		if r.Head == "" {
			return objects.ID{}, &UnknownError{Rev: rev, Why: "there is no HEAD here; name a branch"}
		}
		id, err := objects.ParseID(r.Head)
		if err == nil {
			return id, nil
		}
		base = Heads + r.Head
	}
	if ref, err := r.findTagOrBranch(ctx, base); err != nil || !ref.Target.IsZero() {
		return ref.Target, err
	}
	if after, ok := strings.CutPrefix(base, Heads); ok {
		return objects.ID{}, &UnknownError{Rev: rev, Why: fmt.Sprintf("branch %q has no commits yet", after)}
	}
	if id, err := r.idOfPrefix(ctx, base, kind); err != nil || !id.IsZero() {
		return id, err
	}
	if id, err := r.findToolCall(ctx, base); err != nil || !id.IsZero() {
		return id, err
	}
	return objects.ID{}, r.newUnknownError(ctx, rev, base)
}

// findTagOrBranch returns the tag of a name, else the branch of it, or the ref of a full name; the zero
// ref when there is none.
func (r Resolver) findTagOrBranch(ctx context.Context, name string) (objects.Ref, error) {
	if name == "" {
		return objects.Ref{}, nil
	}
	full := []string{Tags + name, Heads + name, "refs/" + name}
	if strings.HasPrefix(name, "refs/") {
		full = []string{name}
	}
	found, err := r.Store.GetRefs(ctx, full...)
	if err != nil || len(found) == 0 {
		return objects.Ref{}, err
	}
	return found[0], nil
}

// idOfPrefix returns the id of the only object of a kind (0: of any) whose id begins with prefix; zero
// when there is none.
func (r Resolver) idOfPrefix(ctx context.Context, prefix string, kind objects.Kind) (zeroIfNone objects.ID, err error) {
	if len(prefix) < minPrefix || len(prefix) > 64 || strings.Trim(strings.ToLower(prefix), "0123456789abcdef") != "" {
		return objects.ID{}, nil
	}
	ids, err := r.Store.Find(ctx, kind, prefix, candidates)
	switch {
	case err != nil || len(ids) == 0:
		return objects.ID{}, err
	case len(ids) > 1:
		return objects.ID{}, &AmbiguousError{Rev: prefix, Candidates: ids}
	}
	return ids[0], nil
}

// applyStep returns the commit to which one step, such as ~2, leads from the commit id.
func (r Resolver) applyStep(ctx context.Context, rev string, id objects.ID, step string) (objects.ID, error) {
	switch {
	case step == "^{message}":
		return r.walkBack(ctx, id, func(c *commit.Commit) bool { return c.Op != commit.Append || c.Index == 0 })
	case step == "^{turn}":
		found, err := r.walkBack(ctx, id, (*commit.Commit).BeginsTurn)
		if err == nil && found.IsZero() {
			err = &UnknownError{Rev: rev, Why: "no user message comes before it"}
		}
		return found, err
	case step == "^2":
		return r.secondParent(ctx, rev, id)
	case step[0] == '^' && len(step) > 1:
		return objects.ID{}, &UnknownError{Rev: rev, Why: fmt.Sprintf("%q: want ^, ^2, ^{message} or ^{turn}", step)}
	}
	n := 1
	if digits := step[1:]; digits != "" {
		var err error
		if n, err = strconv.Atoi(digits); err != nil || n < 0 {
			return objects.ID{}, &UnknownError{Rev: rev, Why: fmt.Sprintf("%q is not a number of commits", digits)}
		}
	}
	walked := 0
	for c, err := range commit.Walk(ctx, r.Store, id, n+1) {
		if err != nil {
			return objects.ID{}, err
		}
		if walked == n {
			return c.ID, nil
		}
		walked++
	}
	return objects.ID{}, &UnknownError{Rev: rev, Why: fmt.Sprintf("only %d commits come before it", walked-1)}
}

// secondParent returns the second parent of a merge.
func (r Resolver) secondParent(ctx context.Context, rev string, id objects.ID) (objects.ID, error) {
	c, err := commit.Read(ctx, r.Store, id)
	if err == nil && c.Op != commit.Merge {
		err = &UnknownError{Rev: rev, Why: id.Short() + " is not a merge, so it has no second parent"}
	}
	if err != nil {
		return objects.ID{}, err
	}
	return c.SecondParent(), nil
}

// walkBack returns the first commit, from id back by first parents, that matches; zero when none
// does.
func (r Resolver) walkBack(ctx context.Context, id objects.ID, matches func(*commit.Commit) bool) (objects.ID, error) {
	for c, err := range commit.Walk(ctx, r.Store, id, 0) {
		if err != nil {
			return objects.ID{}, err
		}
		if matches(c) {
			return c.ID, nil
		}
	}
	return objects.ID{}, nil
}

// resolveRefAt returns what a ref named: when is a number of moves ago, or a time.
func (r Resolver) resolveRefAt(ctx context.Context, rev, name, when string) (objects.ID, error) {
	if name == "" || name == "HEAD" || name == "@" {
		name = r.Head
	}
	full := Heads + name
	if ref, err := r.findTagOrBranch(ctx, name); err != nil {
		return objects.ID{}, err
	} else if ref.Name != "" {
		full = ref.Name
	}
	moves, err := strconv.Atoi(when)
	if err == nil {
		return r.movesAgo(ctx, rev, full, moves)
	}
	t, err := ParseTime(when, r.now())
	if err != nil {
		return objects.ID{}, &UnknownError{Rev: rev, Why: err.Error()}
	}
	var oldest objects.LogEntry
	for e, err := range Log(ctx, r.Store, full) {
		if err != nil {
			return objects.ID{}, err
		}
		if oldest = e; !e.Note.Time.After(t) {
			return targetAfter(rev, full, e)
		}
	}
	if oldest.Seq == 0 {
		return objects.ID{}, &UnknownError{Rev: rev, Why: "the ref log has no entry of it"}
	}
	return objects.ID{}, &UnknownError{Rev: rev, Why: fmt.Sprintf("the ref log begins at %s", oldest.Note.Time.Format(time.RFC3339))}
}

func (r Resolver) movesAgo(ctx context.Context, rev, full string, moves int) (objects.ID, error) {
	if moves < 0 {
		return objects.ID{}, &UnknownError{Rev: rev, Why: "want 0 or more moves"}
	}
	entries, err := r.Store.Log(ctx, full, 0, moves+1)
	switch {
	case err != nil:
		return objects.ID{}, err
	case len(entries) > moves:
		return targetAfter(rev, full, entries[moves])
	case len(entries) == moves && moves > 0:
		for _, u := range entries[moves-1].Refs {
			if u.Name == full && !u.Old.IsZero() {
				return u.Old, nil
			}
		}
	}
	return objects.ID{}, &UnknownError{Rev: rev, Why: fmt.Sprintf("it has moved only %d times", len(entries))}
}

// Log yields the entries of the ref log that moved a ref, newest first; the empty name is all
// refs. It reads them in pages, the first of which is small. An error is the last element.
func Log(ctx context.Context, r objects.RefReader, ref string) iter.Seq2[objects.LogEntry, error] {
	return func(yield func(objects.LogEntry, error) bool) {
		before := uint64(0)
		for page := 64; ; page = min(2*page, 4096) {
			entries, err := r.Log(ctx, ref, before, page)
			if err != nil {
				yield(objects.LogEntry{}, err)
				return
			}
			for _, e := range entries {
				if before = e.Seq; !yield(e, nil) {
					return
				}
			}
			if len(entries) < page {
				return
			}
		}
	}
}

// targetAfter returns what the ref with a full name named after a log entry.
func targetAfter(rev, full string, e objects.LogEntry) (objects.ID, error) {
	for _, u := range e.Refs {
		if u.Name == full && !u.New.IsZero() {
			return u.New, nil
		}
	}
	return objects.ID{}, &UnknownError{Rev: rev, Why: "it did not exist then"}
}

// At returns the newest commit, from tip back by first parents, that was made at t or
// before.
func (r Resolver) At(ctx context.Context, tip objects.ID, t time.Time) (objects.ID, error) {
	id, err := r.walkBack(ctx, tip, func(c *commit.Commit) bool { return !c.Time.After(t) })
	if err == nil && id.IsZero() {
		err = &UnknownError{Rev: t.Format(time.RFC3339), Why: "no commit is that old"}
	}
	return id, err
}

func (r Resolver) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

// newUnknownError returns the error for a base that names nothing, with a similar name.
func (r Resolver) newUnknownError(ctx context.Context, rev, base string) error {
	e := &UnknownError{Rev: rev}
	if id, err := r.idOfPrefix(ctx, base, 0); err == nil && !id.IsZero() {
		o, err := objects.Read(ctx, r.Store, id)
		if err == nil && o.Kind != objects.KindCommit {
			e.Why = fmt.Sprintf("it is a %s, not a commit", o.Kind)
			return e
		}
	}
	search := suggest.NewSearch(base, max(min(2, len(base)-1), len(base)/3)) // something has to be right
	for _, folder := range []string{Heads, Tags} {
		all, err := r.Store.Refs(ctx, objects.RefQuery{Prefix: folder, Limit: 1000})
		if err != nil || len(base) > 255 {
			return errors.Join(e, err)
		}
		for _, ref := range all {
			name := Name(ref.Name)
			search.Add(name, name)
		}
		e.Nearest = search.Best()
	}
	return e
}

// Name returns the name of a ref for people: without refs/heads/, refs/tags/ or refs/.
func Name(full string) string {
	for _, folder := range []string{Heads, Tags, "refs/"} {
		if short, ok := strings.CutPrefix(full, folder); ok {
			return short
		}
	}
	return full
}
