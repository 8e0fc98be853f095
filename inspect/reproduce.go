package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/requestbody"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// How a request is made again. The manifest of a request has its head and its options, so compiling
// that head with these options gives the prompt, and history.Request gives the settings and the
// tools. The commits that are sent now are compared with the flags of the manifest; then the target
// encodes the body, and the body's hash is compared with the recorded one. Equal hashes prove that
// the request is reproduced byte for byte. Otherwise Outcome and Why tell the reason: content was
// purged, the encoder has changed, or something that the body depends on is not stored. The body of a
// recorded request was made by another program and is stored itself: its hash is compared instead.

// Outcome is the result of making a request again.
type Outcome string

// The outcomes.
const (
	Same            Outcome = "same"             // the hash of the body proves it
	AsSent          Outcome = "as sent"          // another program sent the body, the body is stored, and its hash proves it
	Differs         Outcome = "differs"          // the same history gives another request now
	Purged          Outcome = "purged"           // content of the request was purged after it was sent; Why names it
	OlderEncoder    Outcome = "older encoder"    // the body differs, and another version of the encoder made the old one
	NotReproducible Outcome = "not reproducible" // something that the body depends on is not stored; Why names it
)

// Reproduction is a request that was made again from its manifest.
type Reproduction struct {
	ID       objects.ID // of the manifest
	Commit   objects.ID // the last block of the response
	Manifest *compile.Manifest
	Prompt   *compile.Prompt
	Request  *llm.Request // its Body is nil when there is no target to encode it, and no stored body
	Masked   bool         // secrets in the Body are masked, so that it is not what was sent
	Outcome  Outcome
	Why      string // the reason for an outcome other than Same
}

// Targets returns the target for the dialect and the provider of a manifest, or nil for an unknown
// one.
type Targets func(m *compile.Manifest) (llm.Target, error)

// Reproduce makes the request that a response answered again. The revision may be any commit of
// the response. Without targets it makes no body.
func Reproduce(ctx context.Context, repo *tract.Repo, rev string, targets Targets) (*Reproduction, error) {
	c, err := repo.Show(ctx, rev)
	if err != nil {
		return nil, err
	}
	m, err := history.Manifest(ctx, repo.Store(), c)
	if err != nil {
		return nil, err
	}
	x := &Reproduction{ID: c.Origin.Manifest, Commit: c.ID, Manifest: m}
	return x, x.reproduce(ctx, repo.Store(), targets)
}

// reproduce compiles the prompt of the manifest again, and sets the outcome of the comparison.
func (x *Reproduction) reproduce(ctx context.Context, r objects.Store, targets Targets) (err error) {
	m := x.Manifest
	if x.Prompt, err = compile.Chain(ctx, r, m.Head, m.Options); err != nil {
		return err
	}
	flags, err := compile.ReadSentFlags(ctx, r, x.ID)
	if err != nil {
		return err
	}
	purged := ""
	if e := x.Prompt.FirstPurged(flags); e != nil {
		purged = e.ID.Short() + " was " + string(compile.WhyPurged(e.Tombstone()))
	}
	x.Request, err = history.Request(ctx, r, m)
	if tombstone := (*objects.PurgedError)(nil); errors.As(err, &tombstone) {
		purged, err = "its tools were "+string(compile.WhyPurged(&tombstone.Tombstone)), nil
	}
	if err != nil {
		return err
	}
	x.Request.Messages = x.Prompt.Messages
	switch {
	case !m.Body.IsZero():
		return x.compareSentBody(ctx, r)
	case purged != "":
		x.Outcome, x.Why = Purged, purged
	case m.Compiled.IsZero() && !m.Sent.IsZero():
		x.Outcome, x.Why = NotReproducible, "another program made it, and its body is not stored"
	case !slices.Equal(flags, x.Prompt.SentFlags()):
		x.Outcome, x.Why = Differs, "other commits would be sent now"
	case m.Compiled.IsZero():
		x.Outcome, x.Why = NotReproducible, "its client had a form of its own and gave no body; the same commits would be sent"
	case m.RequestSettings == nil:
		x.Outcome, x.Why = NotReproducible, "an older version made it, which did not store the settings of the request"
	case m.UncommittedReasoning > 0:
		x.Outcome, x.Why = NotReproducible, fmt.Sprintf("%d of its reasoning blocks were not committed", m.UncommittedReasoning)
	default:
		return x.compareBody(targets)
	}
	return nil
}

// compareSentBody reads the body that another program sent and compares its hash with the recorded one.
func (x *Reproduction) compareSentBody(ctx context.Context, r objects.Store) error {
	b, err := requestbody.Read(ctx, r, x.Manifest.Body)
	if purged := (*objects.PurgedError)(nil); errors.As(err, &purged) {
		x.Outcome, x.Why = Purged, "its body was "+string(compile.WhyPurged(&purged.Tombstone))
		return nil
	}
	if err != nil {
		return err
	}
	x.Request.Body, x.Masked = b.Data, b.Masked
	switch {
	case b.Masked:
		x.Outcome, x.Why = NotReproducible, "another program made it, and its body is stored with secrets masked"
	case objects.Hash(b.Data) != x.Manifest.Sent:
		x.Outcome, x.Why = Differs, "the stored body has another hash"
	default:
		x.Outcome = AsSent
	}
	return nil
}

// compareBody encodes the body and compares its hash with the recorded one.
func (x *Reproduction) compareBody(targets Targets) error {
	var target llm.Target
	var err error
	if targets != nil {
		target, err = targets(x.Manifest)
	}
	if err != nil {
		return err
	}
	if target == nil {
		x.Outcome, x.Why = NotReproducible, fmt.Sprintf("the dialect %q of provider %q is not known here", x.Manifest.Dialect, x.Manifest.Provider)
		return nil
	}
	if x.Request.Body, err = target.Encode(x.Request); err != nil {
		x.Outcome, x.Why = Differs, err.Error()
		return nil //nolint:nilerr // that it cannot be encoded is the outcome
	}
	switch now := target.Address().Encoder; {
	case objects.Hash(x.Request.Body) == x.Manifest.Compiled:
		x.Outcome = Same
	case now != x.Manifest.Encoder:
		x.Outcome, x.Why = OlderEncoder, fmt.Sprintf("encoder %d made it, here is %d", x.Manifest.Encoder, now)
	default:
		x.Outcome, x.Why = Differs, "the body has another hash"
	}
	return nil
}

// VerifyOptions are the options of [Verify].
type VerifyOptions struct {
	Revs     []string                    // responses on the histories of these; nil: all branches, tags and rescue refs
	Progress func(commits, requests int) // is called with the numbers of commits walked and of requests found; may be nil
}

// Verify makes the requests of all responses again, each once, and the oldest of a history first.
// An error is the last element.
func Verify(ctx context.Context, repo *tract.Repo, targets Targets, o VerifyOptions) iter.Seq2[*Reproduction, error] {
	return func(yield func(*Reproduction, error) bool) {
		list, err := findRequests(ctx, repo, o)
		if err != nil {
			yield(nil, fmt.Errorf("verify: %w", err))
			return
		}
		for _, made := range slices.Backward(list) { // compiling is fastest in the order of the history
			x := &made
			x.Manifest, err = compile.ReadManifest(ctx, repo.Store(), x.ID)
			if err == nil {
				err = x.reproduce(ctx, repo.Store(), targets)
			}
			if err != nil {
				err = fmt.Errorf("verify %s: %w", x.Commit.Short(), err)
			}
			if !yield(x, err) || err != nil {
				return
			}
		}
	}
}

// findRequests lists the requests of the responses on histories, newest first. Of each it sets only the
// ids of the manifest and of the commit.
func findRequests(ctx context.Context, repo *tract.Repo, o VerifyOptions) ([]Reproduction, error) {
	tips, err := resolveTips(ctx, repo, o.Revs)
	if err != nil {
		return nil, err
	}
	var list []Reproduction
	origins := map[objects.ID]bool{{}: true}
	commits := 0
	for c, err := range commit.WalkAll(ctx, repo.Store(), tips, nil) {
		if err != nil {
			return nil, err
		}
		commits++
		if o.Progress != nil {
			o.Progress(commits, len(list))
		}
		if origins[c.OriginID] {
			continue
		}
		origins[c.OriginID] = true
		origin, err := commit.ReadOrigin(ctx, repo.Store(), c.OriginID)
		if err != nil {
			return nil, err
		}
		if !origin.Manifest.IsZero() {
			list = append(list, Reproduction{ID: origin.Manifest, Commit: c.ID})
		}
	}
	if o.Progress != nil {
		o.Progress(commits, len(list))
	}
	return list, nil
}
