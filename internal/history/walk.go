// Package history is what the root package and the packages above it (inspect, maintain,
// recorder) share: they all walk histories, read commits of which some may be damaged, and
// add commits to refs.
//
// For most uses: [Tips] returns the commits at all refs; [WalkAll] and [NewestFirst] walk
// from them; [LoadSeq] and [LoadEach] read what the walk found and return damage beside the
// rest. [LastTurn] and [UsedTools] tell whether a tool loop is open, [LatestChanges] and
// [Changes] what was edited or annotated, [Responses] what responses cost, [TurnNumbers] in
// which turn a commit is. [Write] adds commits to a ref: it is the one way to do so, with
// the secrets masked by a [Masker] and the ref log entry made by an [Operation].
//
// The functions keep no lock, transaction or connection open between the elements that they
// yield. They check no permissions and resolve no names; that is for their callers.
package history

import (
	"container/heap"
	"context"
	"fmt"
	"iter"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// RescueTime is the layout of the time at the end of the name of a rescue ref.
const RescueTime = "20060102T150405.000Z"

// NewestFirst yields the headers of all commits that tips reach, each once: by their time,
// the newest first, and a commit always before its parents. It reads no further than the
// caller asks. An error is the last element.
func NewestFirst(ctx context.Context, r objects.Reader, tips []objects.ID) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		w := &walkHeap{seen: map[objects.ID]bool{}}
		defer w.stop()
		for _, tip := range tips {
			if err := w.add(ctx, r, tip); err != nil {
				yield(nil, err)
				return
			}
		}
		for len(w.open) > 0 {
			c := w.open[0].at
			fresh := !w.seen[c.ID]
			if fresh && !yield(c, nil) {
				return
			}
			w.seen[c.ID] = true
			if err := w.advance(ctx, r, fresh); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// advance goes on to the next commit, and adds the histories that a merge brought. Where a
// history meets another one, its rest belongs to that one.
func (w *walkHeap) advance(ctx context.Context, r objects.Reader, fresh bool) error {
	first := w.open[0]
	if !fresh {
		first.stop()
		heap.Pop(w)
		return nil
	}
	c := first.at
	if err := first.step(); err != nil {
		return err
	}
	if first.at == nil {
		heap.Pop(w)
	} else {
		heap.Fix(w, 0)
	}
	for _, other := range c.Parents[min(1, len(c.Parents)):] {
		if err := w.add(ctx, r, other); err != nil {
			return err
		}
	}
	return nil
}

// walk is one history on its way to the root.
type walk struct {
	at   *commit.Commit // nil at the end
	next func() (*commit.Commit, error, bool)
	stop func()
}

// step reads the next commit.
func (w *walk) step() error {
	c, err, more := w.next()
	if err != nil {
		return err
	}
	if w.at = c; !more {
		w.at = nil
	}
	return nil
}

// walkHeap is a heap of histories by the time of their present commits.
type walkHeap struct {
	open []*walk
	seen map[objects.ID]bool
}

func (w *walkHeap) add(ctx context.Context, r objects.Reader, tip objects.ID) error {
	if w.seen[tip] {
		return nil
	}
	next, stop := iter.Pull2(commit.Walk(ctx, r, tip, 0))
	added := &walk{next: next, stop: stop}
	err := added.step()
	if err != nil || added.at == nil {
		stop()
		return err
	}
	heap.Push(w, added)
	return nil
}

func (w *walkHeap) stop() {
	for _, open := range w.open {
		open.stop()
	}
}

// Len, Less, Swap, Push and Pop are for container/heap.
func (w *walkHeap) Len() int { return len(w.open) }

func (w *walkHeap) Less(i, j int) bool {
	a, b := w.open[i].at, w.open[j].at
	if !a.Time.Equal(b.Time) {
		return a.Time.After(b.Time)
	}
	if a.Depth != b.Depth {
		return a.Depth > b.Depth
	}
	return a.ID.Compare(b.ID) > 0
}
func (w *walkHeap) Swap(i, j int) { w.open[i], w.open[j] = w.open[j], w.open[i] }
func (w *walkHeap) Push(x any)    { w.open = append(w.open, x.(*walk)) }
func (w *walkHeap) Pop() any {
	last := w.open[len(w.open)-1]
	w.open = w.open[:len(w.open)-1]
	return last
}

// Tips returns the commits at which branches, tags and rescue refs are, each once.
func Tips(ctx context.Context, r objects.RefReader) ([]objects.ID, error) {
	var tips []objects.ID
	seen := map[objects.ID]bool{}
	for _, folder := range []string{refs.Heads, refs.Tags, refs.Rescued} {
		list, err := r.Refs(ctx, objects.RefQuery{Prefix: folder})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", folder, err)
		}
		for _, ref := range list {
			if !seen[ref.Target] {
				seen[ref.Target], tips = true, append(tips, ref.Target)
			}
		}
	}
	return tips, nil
}

// WalkAll yields the headers of all commits that tips reach by any parent, each once,
// history by history. Commits in seen, and their ancestors, are left out; it adds to seen
// what it yields. A nil seen is empty. An error is the last element.
func WalkAll(ctx context.Context, r objects.Reader, tips []objects.ID, seen map[objects.ID]bool) iter.Seq2[*commit.Commit, error] {
	if seen == nil {
		seen = map[objects.ID]bool{}
	}
	return func(yield func(*commit.Commit, error) bool) {
		for len(tips) > 0 {
			tip := tips[0]
			tips = tips[1:]
			if seen[tip] {
				continue
			}
			for c, err := range commit.Walk(ctx, r, tip, 0) {
				if err == nil && seen[c.ID] {
					break
				}
				if !yield(c, err) || err != nil {
					return
				}
				seen[c.ID] = true
				if len(c.Parents) > 1 {
					tips = append(tips, c.Parents[1:]...)
				}
			}
		}
	}
}

// TurnNumbers returns the number of the turn of every commit that tips reach by first
// parents.
func TurnNumbers(ctx context.Context, r objects.Reader, tips []objects.ID) (map[objects.ID]int, error) {
	turns := map[objects.ID]int{}
	for _, tip := range tips {
		var line []*commit.Commit
		turn := 0
		for c, err := range commit.Walk(ctx, r, tip, 0) {
			if err != nil {
				return nil, err
			}
			if known, ok := turns[c.ID]; ok {
				turn = known
				break
			}
			line = append(line, c)
		}
		for i := len(line) - 1; i >= 0; i-- {
			if line[i].BeginsTurn() {
				turn++
			}
			turns[line[i].ID] = turn
		}
	}
	return turns, nil
}
