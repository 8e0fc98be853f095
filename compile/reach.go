package compile

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// A prompt with a budget has the end of a history and, of what is before, only what
// is sent whatever the budget. The mark of a commit leads to the last one before it
// that can be such, or that speaks of others, and from there to the next; the
// running sums of weights count what is between. So the rest is not read.

// unread is what of a history is not among its entries. The first entries are those
// that marks and annotations led to; from there on none is missing.
type unread struct {
	known  []uint64 // their depths
	count  int      // commits that are not there
	weight commit.Weight
}

// place is where an entry stands in the history. One of which something is unread has
// no merges, and the depth says it.
func (u unread) place(i int) int {
	if i < len(u.known) {
		return int(u.known[i])
	}
	return i + u.count
}

// within is whole for a budget, and reads only as far as that reaches. It gives nil
// where all has to be read to know what is sent: a history that is not much longer,
// or that has merges, summaries, or pinned thoughts or tool calls far back.
func within(ctx context.Context, r objects.Reader, head objects.ID, o Options, least int) (*history, error) {
	e := &end{next: head, commits: least, tokens: o.Budget, depth: commitDepths}
	for {
		more, err := e.walk(ctx, r)
		if err != nil || !more {
			return nil, err
		}
		h, err := e.history(ctx, r)
		if err != nil || h == nil {
			return nil, err
		}
		err = h.settle(ctx, r, o)
		if slices.ContainsFunc(h.entries[:len(h.unread.known)], needsTurn) {
			return nil, nil
		}
		switch at, missed := h.missed(); {
		case missed:
			e.depth = at
		case err != nil || h.cut: // the turns before go as the first of these does
			return h, err
		default:
			e.tokens *= 2
		}
	}
}

// needsTurn tells whether the turn of an entry must be known to know that it is sent.
func needsTurn(e Entry) bool {
	return e.Sent && (isTool(e.Kind) || e.Kind == content.KindReasoning)
}

// missed finds the first commit that was sent by one of the requests that the scale is
// from, and was not read.
func (h *history) missed() (depth uint64, missed bool) {
	depth = commitDepths
	for _, flags := range h.flags {
		known := h.unread.known
		for i, sent := range flags[:min(len(flags), h.unread.count+len(known))] {
			for len(known) > 0 && known[0] < uint64(i) {
				known = known[1:]
			}
			if sent && (len(known) == 0 || known[0] != uint64(i)) {
				depth = min(depth, uint64(i))
				break
			}
		}
	}
	return depth, depth < commitDepths
}

// end is the end of a history, and how far it has to go at least.
type end struct {
	list []*commit.Commit // newest first
	next objects.ID
	sum  int // tokens of the list

	commits, tokens int
	depth           uint64
}

// commitDepths is deeper than any commit: no depth has to be reached.
const commitDepths = 1<<64 - 1

// walk goes on to the beginning of a turn. more tells whether that is worth while:
// there is more before it, and nothing that needs all of it.
func (e *end) walk(ctx context.Context, r objects.Reader) (more bool, err error) {
	for c, err := range commit.Walk(ctx, r, e.next, 0) {
		if err != nil || c.Op == commit.Merge || c.Op == commit.Compress {
			return false, err
		}
		e.list, e.next = append(e.list, c), c.Parent()
		e.sum += Estimate(c.Own().Sent)
		if c.BeginsTurn() && len(e.list) >= e.commits && e.sum > e.tokens && c.Depth <= e.depth {
			return len(c.Parents) > 0, nil
		}
	}
	return false, nil
}

// marksWorth is how many commits can be walked over in the time that it takes to
// read one by its id.
const marksWorth = 128

// history is the list with what marks and annotations lead to; nil when one of them
// needs all of it.
func (e *end) history(ctx context.Context, r objects.Reader) (*history, error) {
	first := e.list[len(e.list)-1]
	var known []*commit.Commit // newest first
	for id, left := first.Mark, 64+first.Depth/marksWorth; !id.IsZero(); left-- {
		c, err := commit.Read(ctx, r, id)
		if err != nil || left == 0 || c.Op == commit.Merge || c.Op == commit.Compress {
			return nil, err
		}
		known, id = append(known, c), c.Mark
	}
	targets, err := e.targets(ctx, r, known)
	if err != nil {
		return nil, err
	}
	if known = append(known, targets...); len(known) == int(first.Depth) {
		return nil, nil // that is all of it
	}
	slices.SortFunc(known, func(a, b *commit.Commit) int { return cmp.Compare(a.Depth, b.Depth) })
	h := newHistory()
	own := first.Own()
	h.unread = unread{count: int(first.Depth) - len(known), weight: commit.Weight{All: first.Weight.All - own.All, Sent: first.Weight.Sent - own.Sent}}
	h.entries = make([]Entry, len(known)+len(e.list))
	var before objects.ID
	for i, c := range known {
		own := c.Own()
		h.unread.known = append(h.unread.known, c.Depth)
		h.unread.weight.All -= own.All
		h.unread.weight.Sent -= own.Sent
		h.entries[i].take(c, nil)
		if c.Parent() != before {
			h.entries[i].place |= apart
		}
		before = c.ID
	}
	for i, c := range e.list {
		h.entries[len(h.entries)-1-i].take(c, nil)
	}
	h.number()
	begun := false // the message at hand is known from its beginning
	for i, c := range known {
		begun = begun && h.entries[i].place&apart == 0 || c.Says() && c.Index == 0
		note := h.notes[c.ID]
		if pinned := c.Marks() || note != nil && note.Priority == priority.Pinned; pinned && c.Says() && !begun {
			return nil, nil
		}
	}
	return h, h.reasons(ctx, r)
}

// targets lists the commits before the list that an annotation or an edit speaks of, and
// no mark leads to. Whether they are of this history is looked up from the mark after them: nothing
// that an annotation says makes the words of another one part of a prompt.
func (e *end) targets(ctx context.Context, r objects.Reader, known []*commit.Commit) (list []*commit.Commit, err error) {
	first := e.list[len(e.list)-1]
	above := append([]*commit.Commit{first}, known...)
	said := map[objects.ID]bool{}
	for _, c := range e.list {
		said[c.ID] = true
	}
	for _, n := range append(e.list[:len(e.list):len(e.list)], known...) {
		if n.Op != commit.Annotate && n.Op != commit.Edit || said[n.Target] {
			continue
		}
		said[n.Target] = true
		c, err := commit.Read(ctx, r, n.Target)
		if errors.Is(err, objects.ErrNotFound) {
			continue // it speaks of nothing
		}
		if err != nil {
			return nil, err
		}
		if c.Depth >= first.Depth || c.Marks() {
			continue // it is there, or no mark leads to it because it is not of this history
		}
		at, _ := slices.BinarySearchFunc(above, c.Depth, func(a *commit.Commit, depth uint64) int { return cmp.Compare(depth, a.Depth) })
		from := above[at-1]
		for c, err = range commit.Walk(ctx, r, from.ID, int(from.Depth-c.Depth)+1) {
			if err != nil {
				return nil, err
			}
		}
		if c.ID == n.Target {
			list = append(list, c)
		}
	}
	return list, nil
}

// Complete makes the entries of a prompt those of every commit of the history, where
// a budget left most of them unread.
func (p *Prompt) Complete(ctx context.Context, r objects.Reader) error {
	if p.Before == 0 {
		return nil
	}
	h, err := gather(ctx, r, p.Head, nil)
	if err != nil {
		return err
	}
	h.decide(p.options)
	known := make(map[objects.ID]*Entry, len(p.Entries))
	for i := range p.Entries {
		known[p.Entries[i].ID] = &p.Entries[i]
	}
	for i := range h.entries {
		e := &h.entries[i]
		turn, message := e.Turn, e.message
		if k := known[e.ID]; k != nil {
			*e = *k
			e.Turn, e.message = turn, message
		} else if e.Sent {
			e.leaveOut(whyBudget)
		}
	}
	var all Tokens
	for i := range h.entries {
		all.count(&h.entries[i])
	}
	p.Tokens = all.scaled(p.Scale, true)
	p.Said = slices.Clone(p.Said)
	for i, at := range p.Said {
		p.Said[i] = int32(p.unread.place(int(at)))
	}
	p.Entries, p.Before, p.unread = h.entries, 0, unread{}
	return nil
}
