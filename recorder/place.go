package recorder

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/reconcile"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// place is where a request belongs.
type place struct {
	base objects.ID        // the last commit that has what the request repeats; zero: none
	rest []content.Message // what the request adds
	talk bool              // base has more than instructions
}

// maxRaces is how often a place is looked for again because somebody else was
// faster.
const maxRaces = 16

// put finds the place of a request and adds what is new of it. The branch stands at
// head then, and the reply belongs after it.
func (t *Transport) put(ctx context.Context, req *llm.Request, body []byte, wanted string) (branch *tract.Branch, head objects.ID, err error) {
	t.placing.Lock()
	defer t.placing.Unlock()
	for range maxRaces {
		if err = t.index.refresh(ctx); err != nil {
			return nil, head, err
		}
		var at place
		if at, err = t.find(ctx, req, body, wanted); err != nil {
			return nil, head, err
		}
		branch, head, err = t.add(ctx, at, wanted)
		if moved := (*tract.ConflictError)(nil); !errors.As(err, &moved) {
			return branch, head, err
		}
	}
	return nil, head, err
}

// add adds what is new of a request to a branch that stands at its place, or to a
// new one.
func (t *Transport) add(ctx context.Context, at place, wanted string) (*tract.Branch, objects.ID, error) {
	name := t.standing(at.base, wanted)
	if name == "" {
		from := wanted
		if from == "" && at.talk {
			from = t.index.on[at.base]
		}
		var err error
		if name, err = t.free(ctx, from); err != nil {
			return nil, objects.ID{}, err
		}
	}
	b := t.repo.Branch(name)
	if tip, err := b.Tip(ctx); err != nil || tip.IsZero() {
		if _, stood := t.index.tips[refs.Heads+name]; err == nil && stood { // somebody deleted it
			delete(t.index.tips, refs.Heads+name)
			err = &tract.ConflictError{Operation: "record", Branch: name, Expected: at.base}
		}
		if err != nil {
			return nil, objects.ID{}, err
		}
	}
	ids, err := b.AppendMessages(ctx, at.base, at.rest, tract.AppendOptions{Author: t.o.Author})
	if err != nil || len(ids) == 0 {
		return b, at.base, err
	}
	return b, ids[len(ids)-1], nil
}

// standing is a branch whose tip is a commit, of those that may be used; empty:
// there is none.
func (t *Transport) standing(at objects.ID, wanted string) string {
	var names []string
	for ref, tip := range t.index.tips {
		name := strings.TrimPrefix(ref, refs.Heads)
		if tip == at && !at.IsZero() && (wanted == "" || name == wanted || stem(name) == wanted) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.MinFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
}

// numbered finds the number at the end of the name of a fork.
var numbered = regexp.MustCompile(`-[0-9]{1,6}$`)

// stem is the name that a fork has its own from.
func stem(name string) string { return numbered.ReplaceAllString(name, "") }

// free is a name that no branch has: the wanted one, or else that with a number.
// Without a wanted one it is made of the time.
func (t *Transport) free(ctx context.Context, wanted string) (string, error) {
	if wanted == "" {
		wanted = t.o.Prefix + t.clock().UTC().Format("20060102-150405")
	}
	if err := refs.Check(wanted); err != nil {
		return "", fmt.Errorf("branch %w", err)
	}
	base, name := wanted, wanted
	if _, there := t.index.tips[refs.Heads+wanted]; there {
		base = stem(wanted)
	}
	for n := 2; ; n++ {
		if _, there := t.index.tips[refs.Heads+name]; !there {
			ref, err := objects.ReadRef(ctx, t.repo.Store(), refs.Heads+name)
			if err != nil || ref.Target.IsZero() {
				return name, err
			}
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
}

// find finds the place of a request: after the longest history that compiles to
// what it begins with. What was erased and the client says again counts as little as it
// does in a prompt, and is not stored again.
func (t *Transport) find(ctx context.Context, req *llm.Request, body []byte, wanted string) (place, error) {
	all := named(req.Messages)
	if after := rawjson.Value(body).Get("previous_response_id").Text(); after != "" {
		if base, err := t.index.response(ctx, after); err != nil || !base.IsZero() {
			return place{base: base, rest: all, talk: true}, err
		}
	}
	at, err := t.match(ctx, all, wanted)
	if err != nil || repeated(at.rest) == 0 {
		return at, err
	}
	left, err := t.index.remaining(ctx, all, t.index.masked(all))
	if err != nil || left == nil {
		return at, err
	}
	return t.match(ctx, left, wanted)
}

// match finds the place of a conversation.
func (t *Transport) match(ctx context.Context, all []content.Message, wanted string) (place, error) {
	seen := t.index.masked(all)
	list, n := reconcile.Positions(seen)
	var lead []content.Block
	for _, m := range seen[:n] {
		lead = append(lead, m.Blocks...)
	}
	for _, s := range slices.Backward(list) {
		base, err := t.choose(ctx, t.index.whole[s.Key], wanted, func(last reconcile.Position, _ []content.Block) bool { return last.Key == s.Key })
		if err != nil {
			return place{}, err
		}
		if !base.IsZero() {
			return place{base: base, rest: reconcile.After(all, s), talk: s.Message >= n}, nil
		}
		if !s.Replied {
			continue
		}
		var changed []content.Message
		base, err = t.choose(ctx, t.index.talk[s.DialogueKey], wanted, func(last reconcile.Position, was []content.Block) bool {
			var can bool
			changed, can = instead(was, lead)
			return can && last.DialogueKey == s.DialogueKey
		})
		if err != nil {
			return place{}, err
		}
		if !base.IsZero() {
			return place{base: base, rest: append(changed, reconcile.After(all, s)...), talk: true}, nil
		}
	}
	return place{rest: all}, nil
}

// choose gives a commit that fits, zero when none does: one that a branch stands at
// before others, and of these the newest.
func (t *Transport) choose(ctx context.Context, candidates []objects.ID, wanted string, fits func(last reconcile.Position, lead []content.Block) bool) (best objects.ID, err error) {
	for _, at := range slices.Backward(candidates) {
		stands := t.standing(at, wanted) != ""
		if !best.IsZero() && !stands {
			continue
		}
		last, lead, err := t.index.says(ctx, at)
		if errors.Is(err, objects.ErrNotFound) {
			continue // gc has been there
		}
		if err != nil {
			return objects.ID{}, err
		}
		if fits(last, lead) {
			if best = at; stands {
				return best, nil
			}
		}
	}
	return best, nil
}

// leadName begins the names of the instructions that a request begins with, so that
// a later request can say them in other words.
const leadName = "record"

// named is messages whose first instructions have names.
func named(messages []content.Message) []content.Message {
	all := slices.Clone(messages)
	n := 0
	for i, m := range all {
		if m.Role != content.RoleSystem {
			break
		}
		all[i].Blocks = slices.Clone(m.Blocks)
		for j, b := range m.Blocks {
			if text, ok := b.(content.Text); ok && text.Of == content.KindSystem {
				if n++; text.Name == "" {
					text.Name = fmt.Sprintf("%s-%d", leadName, n)
				}
				all[i].Blocks[j] = text
			}
		}
	}
	return all
}

// instead is the instructions that say in other words what a history begins with;
// it cannot be told when there are more or fewer of them, or some have no name.
func instead(was, lead []content.Block) (changed []content.Message, can bool) {
	if len(was) != len(lead) {
		return nil, false
	}
	for i, b := range lead {
		now, ok := b.(content.Text)
		before, had := was[i].(content.Text)
		if !ok || !had {
			return nil, false
		}
		if strings.TrimSpace(now.Text) == strings.TrimSpace(before.Text) {
			continue
		}
		if before.Name == "" || before.Name != now.Name {
			return nil, false
		}
		changed = append(changed, content.Message{Role: content.RoleSystem, Blocks: []content.Block{now}})
	}
	return changed, true
}
