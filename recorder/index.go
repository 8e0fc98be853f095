package recorder

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/reconcile"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// index finds the commits that may compile to a conversation, by match keys. It is
// made of the branches when it is asked first, brought up to date by the refs that
// moved since, and forgotten with the transport: all of it is in the histories. What
// it gives is looked at again before it is believed.
type index struct {
	repo  *tract.Repo
	masks bool                        // secrets are masked here
	whole map[objects.ID][]objects.ID // commits by the key of all they compile to
	talk  map[objects.ID][]objects.ID // and by the key without instructions, where the model has spoken
	on    map[objects.ID]string       // a branch that has the commit
	tips  map[string]objects.ID       // of the branches that were looked at
	told  map[string]objects.ID       // last blocks of replies, by the provider's id
}

func newIndex(repo *tract.Repo, masks bool) *index {
	return &index{
		repo: repo, masks: masks, whole: map[objects.ID][]objects.ID{}, talk: map[objects.ID][]objects.ID{}, on: map[objects.ID]string{},
		tips: map[string]objects.ID{}, told: map[string]objects.ID{},
	}
}

// How many refs are listed at once, and how many edits, annotations and the like of
// a history are looked behind: a client goes on from what it was told before them.
const (
	refPage = 64
	maxBack = 32
)

// refresh looks at the branches that moved. All of a page are compared, since those
// that moved in the same moment come in any order.
func (x *index) refresh(ctx context.Context) error {
	for limit := refPage; ; limit *= 4 {
		list, err := x.repo.Store().Refs(ctx, objects.RefQuery{Prefix: refs.Heads, Newest: true, Limit: limit})
		if err != nil {
			return fmt.Errorf("list branches: %w", err)
		}
		oldest := len(list) > 0 && x.tips[list[len(list)-1].Name] == list[len(list)-1].Target
		for _, ref := range slices.Backward(list) {
			if x.tips[ref.Name] == ref.Target {
				continue
			}
			if err := x.add(ctx, ref); err != nil {
				return err
			}
		}
		if oldest || len(list) < limit {
			return nil
		}
	}
}

// add looks at the history of a branch. One that cannot be compiled, because it is
// damaged, is left out: a conversation that is not found begins anew.
func (x *index) add(ctx context.Context, ref objects.Ref) error {
	name := strings.TrimPrefix(ref.Name, refs.Heads)
	p, err := compile.Chain(ctx, x.repo.Store(), ref.Target, compile.Options{})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		x.tips[ref.Name] = ref.Target
		return nil // other branches are there all the same
	}
	x.prompt(p, name)
	back := 0
	for i := len(p.Entries) - 1; i >= 0 && back < maxBack; i-- {
		c := p.Entries[i].Change() // of what was said before
		if c == nil {
			continue
		}
		before := c.Parent()
		if before.IsZero() || x.on[before] != "" {
			continue
		}
		back++
		if old, err := compile.Chain(ctx, x.repo.Store(), before, compile.Options{}); err == nil {
			x.prompt(old, name)
		}
	}
	x.tips[ref.Name] = ref.Target
	return nil
}

// prompt puts the positions of a prompt in. The head of a history says the same as the
// last block that is sent, when nothing follows it but what is not.
func (x *index) prompt(p *compile.Prompt, branch string) {
	list, _ := reconcile.Positions(x.masked(p.Messages))
	if len(list) == 0 {
		x.on[p.Head] = branch
		return
	}
	rest := list
	for i, commits := range p.MessageCommits() {
		for ; len(rest) > 0 && rest[0].Message == i; rest = rest[1:] {
			x.put(rest[0], commits[rest[0].Block], branch)
		}
	}
	x.put(list[len(list)-1], p.Head, branch)
}

// masked is messages as they are compared. What is stored may be masked, what a client
// sends again is not: secrets count as their masks on both sides.
func (x *index) masked(messages []content.Message) []content.Message {
	if !x.masks {
		return messages
	}
	all := slices.Clone(messages)
	for i, m := range all {
		all[i].Blocks = slices.Clone(m.Blocks)
		for j, b := range m.Blocks {
			all[i].Blocks[j], _ = history.Masked(b)
		}
	}
	return all
}

func (x *index) put(s reconcile.Position, at objects.ID, branch string) {
	x.on[at] = branch
	if !slices.Contains(x.whole[s.Key], at) {
		x.whole[s.Key] = append(x.whole[s.Key], at)
	}
	if s.Replied && !slices.Contains(x.talk[s.DialogueKey], at) {
		x.talk[s.DialogueKey] = append(x.talk[s.DialogueKey], at)
	}
}

// says gives the last position of what a commit compiles to, and the instructions that
// it begins with.
func (x *index) says(ctx context.Context, at objects.ID) (last reconcile.Position, lead []content.Block, err error) {
	p, err := compile.Chain(ctx, x.repo.Store(), at, compile.Options{})
	if err != nil {
		return reconcile.Position{}, nil, err
	}
	seen := x.masked(p.Messages)
	list, n := reconcile.Positions(seen)
	for _, m := range seen[:n] {
		lead = append(lead, m.Blocks...)
	}
	if len(list) > 0 {
		last = list[len(list)-1]
	}
	return last, lead, nil
}

// same tells whether two commits compile to the same conversation.
func (x *index) same(ctx context.Context, a, b objects.ID) (bool, error) {
	one, _, err := x.says(ctx, a)
	if err != nil {
		return false, err
	}
	other, _, err := x.says(ctx, b)
	return one.Key == other.Key, err
}

// response finds the last block of the reply with a provider's id; zero when there
// is none.
func (x *index) response(ctx context.Context, id string) (objects.ID, error) {
	if at := x.told[id]; !at.IsZero() {
		return at, nil
	}
	var tips []objects.ID
	for _, tip := range x.tips {
		tips = append(tips, tip)
	}
	for c, err := range x.repo.Log(ctx, "", tract.LogOptions{Tips: tips}) {
		if err != nil {
			return objects.ID{}, err
		}
		if c.Origin != nil && c.Origin.ResponseID == id {
			x.told[id] = c.ID
			return c.ID, nil
		}
	}
	return objects.ID{}, nil
}

// remember notes the id of a reply, which a later request may name in the place of
// the conversation.
func (x *index) remember(ctx context.Context, last objects.ID) error {
	c, err := commit.Read(ctx, x.repo.Store(), last)
	if err != nil {
		return err
	}
	origin, err := commit.ReadOrigin(ctx, x.repo.Store(), c.OriginID)
	if err == nil && origin.ResponseID != "" {
		x.told[origin.ResponseID] = last
	}
	return err
}
