package tract

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/objects"
)

// Reply is one answer of a model, with what it cost.
type Reply struct {
	Commit    objects.ID // its last block
	Session   string     // the branch that it was asked on
	Turn      int        // number of its turn, with [Numbered]
	Provider  string
	Model     string
	Time      time.Time     // its request was sent, else it was committed
	Usage     content.Usage // as it was told
	Reasoning int64         // tokens of thoughts as reported; of thoughts that were not kept, what its words leave of the output
	Estimate  int           // of thoughts that were kept and not reported; see [Repo.Scale]
	Estimated bool          // the tokens of its thoughts were not reported
}

// Replies yields the answers of models, newest first: of the history of a
// revision, or of all branches, tags and replies that could not land when rev is
// empty. Each comes once, however many histories have it; those without a known
// usage are left out. An error is the last element.
func (r *Repo) Replies(ctx context.Context, rev string, opts ...Option) iter.Seq2[Reply, error] {
	return func(yield func(Reply, error) bool) {
		tips, turns, err := r.numbered(ctx, rev, opts)
		if err != nil {
			yield(Reply{}, fmt.Errorf("replies: %w", err))
			return
		}
		for reply, err := range r.paid(ctx, history.NewestFirst(ctx, r.store, tips)) {
			if err != nil {
				err = fmt.Errorf("replies: %w", err)
			}
			reply.Turn = turns[reply.Commit]
			if !yield(reply, err) {
				return
			}
		}
	}
}

// costPage is how many replies are read at once.
const costPage = 256

// answer is the blocks of one reply, as far as headers tell.
type answer struct {
	last    *commit.Commit
	said    int64 // weight of what is no thought
	thought int   // estimate of the thoughts
	counted bool  // with a later part of it
}

// imported is a response that an import brought to a branch. When it came in parts, since
// the log was still being written, each part has its own origin: the last one tells what
// the response cost.
type imported struct{ session, importer, response string }

// importedAs is the response that an origin is of, empty when it was not imported.
func importedAs(o *commit.Origin) imported {
	if o.Importer == "" || o.ResponseID == "" {
		return imported{}
	}
	return imported{o.Session, o.Importer, o.ResponseID}
}

// add takes a block of the reply.
func (a *answer) add(c *commit.Commit) {
	if c.Kind == content.KindReasoning {
		a.thought += compile.Estimate(c.Kind.Weight(c.Size))
	} else {
		a.said += c.Kind.Weight(c.Size)
	}
}

// reasoning is the tokens of the thoughts and the estimate of those that the provider did
// not report.
func (a *answer) reasoning(u content.Usage, unkept int) (tokens int64, estimate int, estimated bool) {
	switch {
	case u.Reasoning > 0:
		return u.Reasoning, 0, false
	case unkept > 0: // only the output tells of them
		return max(u.Output-int64(compile.Estimate(a.said)), 0), 0, true
	}
	return 0, a.thought, a.thought > 0
}

// Scale is what makes tokens from estimates, as in the prompt of a revision.
func (r *Repo) Scale(ctx context.Context, rev string) (compile.Scale, error) {
	id, err := r.Resolve(ctx, rev)
	if err != nil {
		return compile.Scale{}, err
	}
	return compile.ScaleOf(ctx, r.store, id)
}

// paid finds the answers among commits that come newest first.
func (r *Repo) paid(ctx context.Context, commits iter.Seq2[*commit.Commit, error]) iter.Seq2[Reply, error] {
	return func(yield func(Reply, error) bool) {
		seen, counted := map[objects.ID]*answer{}, map[imported]bool{}
		var page []*answer
		flush := func() bool {
			ok := r.costs(ctx, page, counted, yield)
			for _, a := range page {
				seen[a.last.Origin] = &answer{last: a.last} // more of it is not counted again
			}
			page = nil
			return ok
		}
		for c, err := range commits {
			if err != nil {
				if flush() {
					yield(Reply{}, err)
				}
				return
			}
			if !maybeReply(c) {
				continue
			}
			if known := seen[c.Origin]; known != nil {
				known.add(c)
				continue
			}
			if len(page) >= costPage && !flush() {
				return
			}
			a := &answer{last: c}
			a.add(c)
			seen[c.Origin], page = a, append(page, a)
		}
		flush()
	}
}

// maybeReply tells whether a commit may be the block of a model's answer, as far
// as its header says.
func maybeReply(c *commit.Commit) bool {
	return c.Op == commit.Append && !c.Origin.IsZero() && c.Role != content.RoleUser && c.Role != content.RoleSystem
}

func (r *Repo) costs(ctx context.Context, page []*answer, counted map[imported]bool, yield func(Reply, error) bool) bool {
	ids := make([]objects.ID, len(page))
	for i, a := range page {
		ids[i] = a.last.Origin
	}
	origins, err := r.origins(ctx, ids)
	if err != nil {
		yield(Reply{}, err)
		return false
	}
	newest := map[imported]*answer{}
	for _, a := range page {
		part := importedAs(origins[a.last.Origin])
		switch later := newest[part]; {
		case part.response == "":
		case later != nil:
			later.said += a.said
			later.thought += a.thought
			a.counted = true
		default:
			newest[part], a.counted = a, counted[part]
			counted[part] = true
		}
	}
	for _, a := range page {
		o := origins[a.last.Origin]
		if a.counted || o.Usage.IsZero() {
			continue
		}
		reply := Reply{Commit: a.last.ID, Session: o.Session, Provider: o.Provider, Model: o.Model, Time: o.Started, Usage: o.Usage}
		reply.Reasoning, reply.Estimate, reply.Estimated = a.reasoning(o.Usage, o.Unkept)
		if reply.Time.IsZero() {
			reply.Time = a.last.Time
		}
		if !yield(reply, nil) {
			return false
		}
	}
	return true
}

// origins reads where commits came from.
func (r *Repo) origins(ctx context.Context, ids []objects.ID) (map[objects.ID]*commit.Origin, error) {
	found := make(map[objects.ID]*commit.Origin, len(ids))
	for obj, err := range r.store.Get(ctx, ids) {
		if err != nil {
			return nil, fmt.Errorf("read where commits came from: %w", err)
		}
		if found[obj.ID], err = commit.ParseOrigin(obj); err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		if found[id] == nil {
			return nil, fmt.Errorf("read where commits came from: %w", &objects.NotFoundError{ID: id})
		}
	}
	return found, nil
}
