package tract

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

// Verdict says what came of making a request again.
type Verdict string

// The verdicts.
const (
	Same         Verdict = "same"             // the hash of the body proves it
	Differs      Verdict = "differs"          // the same history makes another request now
	Pruned       Verdict = "pruned"           // words that it was made of were erased since; Why says whose
	OlderEncoder Verdict = "older encoder"    // other bytes, and another version wrote the old ones
	Unprovable   Verdict = "not reproducible" // something that made the body is not kept; Why says what
)

// Remade is a request that was made again from its manifest.
type Remade struct {
	ID       objects.ID // of the manifest
	Commit   objects.ID // the last block of the reply
	Manifest *compile.Manifest
	Prompt   *compile.Prompt
	Request  *llm.Request // its Body is nil when there is no target to make it
	Verdict  Verdict
	Why      string // of another verdict than Same
}

// Targets gives the wire format that a manifest names. It may return nil for one
// that it does not know.
type Targets func(m *compile.Manifest) (llm.Target, error)

// Remake makes the request again that a reply answered: the revision may be any
// commit of the reply.
func (r *Repo) Remake(ctx context.Context, rev string, targets Targets) (*Remade, error) {
	c, err := r.Show(ctx, rev)
	if err != nil {
		return nil, err
	}
	if c.From == nil || c.From.Manifest.IsZero() {
		return nil, fmt.Errorf("prompt of %s: %w", c.ID.Short(), noReply(rev))
	}
	return r.remake(ctx, c.From.Manifest, c.ID, targets, &sentBefore{})
}

func noReply(rev string) error {
	return &refs.UnknownError{Rev: rev, Why: "it is no reply of a model, so there is no prompt that it was given to"}
}

// sentBefore is which commits the request of a manifest sent, so that those of the
// next one need not be put together from all before it.
type sentBefore struct {
	id    objects.ID
	flags []bool
}

// after gives the flags of the manifest with an id, and remembers them.
func (s *sentBefore) after(ctx context.Context, r objects.Reader, id objects.ID, m *compile.Manifest) (flags []bool, err error) {
	if !s.id.IsZero() && s.id == m.Prev {
		flags, err = m.Flags(s.flags)
	} else {
		flags, err = compile.ReadFlags(ctx, r, id)
	}
	s.id, s.flags = id, flags
	return flags, err
}

func (r *Repo) remake(ctx context.Context, id, reply objects.ID, targets Targets, before *sentBefore) (*Remade, error) {
	x := &Remade{ID: id, Commit: reply}
	var err error
	if x.Manifest, err = compile.ReadManifest(ctx, r.store, id); err != nil {
		return nil, err
	}
	m := x.Manifest
	if x.Prompt, err = compile.Chain(ctx, r.store, m.Head, m.Options); err != nil {
		return nil, err
	}
	flags, err := before.after(ctx, r.store, id, m)
	if err != nil {
		return nil, err
	}
	lost := prunedOf(x.Prompt, flags)
	x.Request, err = r.askedAgain(ctx, m)
	if left := (*objects.ErasedError)(nil); errors.As(err, &left) {
		lost, err = "its tools were "+string(compile.WhyErased(&left.Tombstone)), nil
	}
	if err != nil {
		return nil, err
	}
	x.Request.Messages = x.Prompt.Messages
	switch {
	case lost != "":
		x.Verdict, x.Why = Pruned, lost
	case !slices.Equal(flags, x.Prompt.Flags()):
		x.Verdict, x.Why = Differs, "other commits would be sent now"
	case m.Compiled.IsZero():
		x.Verdict, x.Why = Unprovable, "its client had a form of its own and gave no body; the same commits would be sent"
	case m.Asked == nil:
		x.Verdict, x.Why = Unprovable, "an older version made it, which did not write down how the model was asked"
	case m.Unkept > 0:
		x.Verdict, x.Why = Unprovable, fmt.Sprintf("%d of its thoughts were not committed", m.Unkept)
	default:
		return x, x.encode(targets)
	}
	return x, nil
}

// prunedOf says whose words are missing in a prompt that once sent some commits;
// empty: nobody's.
func prunedOf(p *compile.Prompt, sent []bool) string {
	if e := p.Lost(sent); e != nil {
		return e.ID.Short() + " was " + string(compile.WhyErased(e.Erased()))
	}
	return ""
}

// encode makes the body and compares its hash.
func (x *Remade) encode(targets Targets) error {
	target, err := targets(x.Manifest)
	if err != nil {
		return err
	}
	if target == nil {
		x.Verdict, x.Why = Unprovable, fmt.Sprintf("the dialect %q of provider %q is not known here", x.Manifest.Dialect, x.Manifest.Provider)
		return nil
	}
	if x.Request.Body, err = target.Encode(x.Request); err != nil {
		x.Verdict, x.Why = Differs, err.Error()
		return nil //nolint:nilerr // that it cannot be encoded is the answer
	}
	switch now := target.Address().Encoder; {
	case objects.Hash(x.Request.Body) == x.Manifest.Compiled:
		x.Verdict = Same
	case now != x.Manifest.Encoder:
		x.Verdict, x.Why = OlderEncoder, fmt.Sprintf("encoder %d made it, here is %d", x.Manifest.Encoder, now)
	default:
		x.Verdict, x.Why = Differs, "the body has another hash"
	}
	return nil
}

// Verify makes the requests of all replies on the histories of revisions again,
// the oldest of a history first, each once: of all branches, tags and rescued
// replies when no revision is given. looked, if not nil, is told how many commits
// were looked at, and how many requests there are.
func (r *Repo) Verify(ctx context.Context, targets Targets, looked func(commits, requests int), revs ...string) iter.Seq2[*Remade, error] {
	return func(yield func(*Remade, error) bool) {
		replies, err := r.replies(ctx, looked, revs)
		if err != nil {
			yield(nil, fmt.Errorf("verify: %w", err))
			return
		}
		var before sentBefore
		for _, reply := range slices.Backward(replies) { // a prompt is compiled fastest after those before it
			x, err := r.remake(ctx, reply.manifest, reply.commit, targets, &before)
			if err != nil {
				err = fmt.Errorf("verify %s: %w", reply.commit.Short(), err)
			}
			if !yield(x, err) || err != nil {
				return
			}
		}
	}
}

// reply is the last block of a reply, and what its request was made of.
type reply struct{ commit, manifest objects.ID }

// replies lists the replies on the histories of revisions, newest first.
func (r *Repo) replies(ctx context.Context, looked func(commits, requests int), revs []string) ([]reply, error) {
	tips, err := r.tips(ctx, revs...)
	if err != nil {
		return nil, err
	}
	var list []reply
	origins := map[objects.ID]bool{{}: true}
	commits := 0
	for c, err := range history.All(ctx, r.store, tips, nil) {
		if err != nil {
			return nil, err
		}
		if commits++; looked != nil {
			looked(commits, len(list))
		}
		if origins[c.Origin] {
			continue
		}
		origins[c.Origin] = true
		origin, err := commit.ReadOrigin(ctx, r.store, c.Origin)
		if err != nil {
			return nil, err
		}
		if !origin.Manifest.IsZero() {
			list = append(list, reply{c.ID, origin.Manifest})
		}
	}
	if looked != nil {
		looked(commits, len(list))
	}
	return list, nil
}

// tips is the commits of revisions; of all branches, tags and rescued responses when there
// are none.
func (r *Repo) tips(ctx context.Context, revs ...string) ([]objects.ID, error) {
	if len(revs) == 0 {
		return history.Tips(ctx, r.store)
	}
	var ids []objects.ID
	for _, rev := range revs {
		id, err := r.Resolve(ctx, rev)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
