package bolt

import (
	"bytes"
	"fmt"

	"github.com/tract-vcs/tract/objects"
)

// The head of a small store is mostly ids, which nothing compresses. A short head is
// without those of most commits: a commit lies in the head, whole, so that its id can be
// worked out once those are known that it leads to. It takes a third of a microsecond for
// each, whenever the head is read; therefore only the packs of a small store are short.
//
// No id is worked out that another does not prove. The last commit of every line keeps
// its id, which is the hash of the id before it, and so on; so does each 16th of the
// others: what is wrong with one goes no further than to the next. What is said keeps its
// ids: a commit does not depend on whether its words can still be read.

// leaveOut is how many of the commits whose ids could be worked out go without, less one
// that keeps it.
const leaveOut = 16

// leftOut tells which objects of a sheet are without an id in a short head: the commits
// that are the first parent of one behind them, but not each 16th of these, and none that
// a merge is upon: two parents without an id would look like one.
func leftOut(s *objects.Sheet) (out []bool, n int) {
	out = make([]bool, s.Len())
	var merged []int
	for i := range out {
		p := s.Parent(i)
		if p < 0 || s.Kind(i) != objects.KindCommit {
			continue
		}
		out[p] = s.Kind(p) == objects.KindCommit
		if parents, _ := s.Degree(s.Form(i)); parents > 1 {
			merged = append(merged, p)
		}
	}
	for _, p := range merged {
		out[p] = false
	}
	could := 0
	for i := range out {
		if !out[i] {
			continue
		}
		if could++; could%leaveOut == 0 {
			out[i] = false
			continue
		}
		n++
	}
	return out, n
}

// shortIDs is the ids of a short head, and how many are left out: none if what comes of it
// is not what it was made of.
func shortIDs(count int, ids, table []byte) (short []byte, n int) {
	s, err := objects.OpenSheet(count, ids, table, nil)
	if err != nil {
		return ids, 0
	}
	out, n := leftOut(s)
	short = make([]byte, 0, len(ids)-n*idSize)
	for i := range out {
		if !out[i] {
			short = append(short, ids[i*idSize:(i+1)*idSize]...)
		}
	}
	short = append(short, ids[count*idSize:]...)
	p := &pack{ids: short, sound: true}
	if p.workOut(front{count: count, out: n, others: len(ids)/idSize - count}, table) != nil || !bytes.Equal(p.ids, ids) {
		return ids, 0
	}
	return short, n
}

// spread gives the ids of a short head their places. Those that are left out are zero.
func (f front) spread(out []bool, short []byte) (ids []byte) {
	ids = make([]byte, 0, (f.count+f.others)*idSize)
	for i := range out {
		if out[i] {
			ids = ids[:len(ids)+idSize]
			continue
		}
		ids, short = append(ids, short[:idSize]...), short[idSize:]
	}
	return append(ids, short...)
}

// workOut makes the sheet of a short head, and works out the ids that are left out. One
// that is not proven is not known.
func (p *pack) workOut(f front, table []byte) error {
	room := make([]byte, (f.count+f.others)*idSize)
	s, err := objects.OpenSheet(f.count, room, table, nil)
	if err != nil {
		return err
	}
	out, n := leftOut(s)
	if n != f.out {
		return fmt.Errorf("%d ids are left out, and %d should be", f.out, n)
	}
	copy(room, f.spread(out, p.ids))
	p.ids = room
	right := hashCommits(s, room, out)
	for i := range out {
		if out[i] && !right[i] {
			clear(room[i*idSize : (i+1)*idSize])
			p.lost++
		}
	}
	if p.lost > 0 && p.sound {
		return fmt.Errorf("%d ids that are left out do not lead to those that are there", p.lost)
	}
	if p.Sheet, err = objects.OpenSheet(f.count, room, table, nil); err != nil { // s has what was not known yet
		return err
	}
	return nil
}

// hashCommits works out the ids that are left out, and tells which commits are right: what
// has its id if it hashes to that, and what has none if one that is right leads to it.
func hashCommits(s *objects.Sheet, ids []byte, out []bool) (right []bool) {
	var room []objects.ID
	right = make([]bool, len(out))
	for i := range out {
		if s.Kind(i) != objects.KindCommit {
			continue
		}
		room = room[:0]
		id := s.Object(i, &room).Sum()
		if out[i] {
			copy(ids[i*idSize:], id[:])
		}
		right[i] = !out[i] && id == *s.ID(i)
	}
	for i := len(out) - 1; i >= 0; i-- {
		if p := s.Parent(i); p >= 0 && out[p] && right[i] {
			right[p] = true
		}
	}
	return right
}
