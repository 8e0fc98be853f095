package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"math/bits"
	"sync"

	"github.com/tract-vcs/tract/objects"
)

// Sift is objects.Sifter. One goroutine goes down the heads of packs while others
// search through the bodies; nothing is made of what does not match.
func (s *store) Sift(ctx context.Context, tips []objects.ID, may func(data []byte) bool) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		q := &sift{may: may, tips: tips}
		for q.open() {
			q.parts = q.parts[:0]
			err := s.view(ctx, "read", q.read)
			for _, part := range q.parts {
				for _, e := range part.found {
					if !yield(e.object, e.err) {
						return
					}
				}
				if part.err != nil {
					yield(objects.Object{}, s.explain("read", part.err))
					return
				}
			}
			if err != nil {
				yield(objects.Object{}, err)
				return
			}
		}
	}
}

// At one look so many packs are searched through, by so many goroutines. It begins
// with one: many a search ends soon.
const (
	siftPacks   = 32
	siftWorkers = 2
)

// sift is one Sift.
type sift struct {
	may    func([]byte) bool
	tips   []objects.ID // of the lines to come
	next   objects.ID   // of the line at hand; zero: it is done
	passed passed
	scan   scanning
	heads  arena
	bodies [siftWorkers]arena
	size   int // of the last page, in packs
	parts  []*sifted
}

// sifted is a piece of a line: as much of it as lies in one pack, or one commit.
type sifted struct {
	pack  *pack
	said  []saying
	alone objects.Object // the commit, when it lies in no pack
	found []found
	err   error // what ended the search here
}

// saying is where a commit and its content lie in their pack.
type saying struct{ commit, content int32 } // content -1: elsewhere

// open begins the next line when one is done; false: all are.
func (q *sift) open() bool {
	for ; q.next.IsZero() && len(q.tips) > 0; q.tips = q.tips[1:len(q.tips):len(q.tips)] {
		q.passed.index()
		q.next = q.tips[0]
	}
	return !q.next.IsZero()
}

// read searches through the next page.
func (q *sift) read(l *look) error {
	q.size = min(max(2*q.size, 1), siftPacks)
	if q.size == siftPacks {
		l.scan = &q.scan
	}
	q.heads.reset()
	l.arena = &q.heads
	work := make(chan *sifted, siftPacks)
	var workers sync.WaitGroup
	for i := range min(siftWorkers, q.size) {
		workers.Go(func() {
			for part := range work {
				own := newLook(l.file, l.meta) // all that a look has read lies in its arena
				own.over, own.seen, own.staged, own.bodies, own.arena = l.over, l.seen, l.staged, l.bodies, &q.bodies[i]
				part.err = protect(func() error { return q.search(own, part) })
				own.arena.reset()
			}
		})
	}
	err := protect(func() error { return q.walk(l, work) })
	close(work)
	workers.Wait()
	return err
}

// walk goes down the lines as far as the page goes.
func (q *sift) walk(l *look, work chan<- *sifted) error {
	after := uint32(0)
	for packs, alone := 0, 0; packs < q.size && alone < q.size*young.commits && q.open(); {
		if q.passed.has(q.next) {
			q.next = objects.ID{}
			continue
		}
		p, slot, err := l.packOf(q.next, after)
		if err != nil {
			return err
		}
		part := &sifted{pack: p}
		if after = 0; p != nil {
			packs, after = packs+1, p.n
			err = q.walkPack(l, part, slot)
		} else {
			alone++
			var o objects.Object
			if o, err = l.object(q.next); err == nil {
				q.pass(o.ID, o.Parents)
				part.alone = o
			}
		}
		q.parts = append(q.parts, part)
		work <- part
		if err != nil {
			return err
		}
	}
	return nil
}

// pass notes that the line is at a commit, and goes on to its first parent.
func (q *sift) pass(id objects.ID, parents []objects.ID) {
	q.passed.add(id)
	q.next = objects.ID{}
	if len(parents) > 0 {
		q.next = parents[0]
		q.tips = append(q.tips, parents[1:]...)
	}
}

// walkPack goes down a line as far as it lies in one pack.
func (q *sift) walkPack(l *look, part *sifted, slot int) error {
	p := part.pack
	part.said = make([]saying, 0, min(slot+1, dense.commits))
	for slot >= 0 {
		id := p.id(slot)
		if q.passed.has(id) {
			q.next = objects.ID{}
			return nil
		}
		if !p.sound {
			if _, err := l.packed(p, slot); err != nil {
				return err
			}
		}
		parents, links := p.Degree(p.Form(slot))
		if links > 0 {
			part.said = append(part.said, saying{int32(slot), int32(p.Link(slot))})
		}
		if parents == 1 && p.Parent(slot) >= 0 {
			q.passed.add(id)
		} else {
			room := make([]objects.ID, 0, parents+links)
			parents, _ := p.Edges(slot, &room)
			q.pass(id, parents)
		}
		slot = p.Parent(slot)
	}
	return nil
}

// search finds out what of a part may match.
func (q *sift) search(l *look, part *sifted) error {
	if part.pack == nil {
		return q.elsewhere(l, part, part.alone)
	}
	p := part.pack
	body, sound, bad := l.body(p)
	if bad != nil && !errors.Is(bad, errPack) {
		return bad
	}
	sound = sound && p.sound && bad == nil
	none := sound && !q.may(body)
	var room []objects.ID
	for _, s := range part.said {
		at := int(s.content)
		if sound && at >= 0 && p.Kind(at) == objects.KindContent {
			if from, size := p.Data(at); none || !q.may(body[from:from+size]) {
				continue
			}
		}
		commit := p.Object(int(s.commit), &room)
		if at < 0 {
			if err := q.elsewhere(l, part, commit); err != nil {
				return err
			}
			continue
		}
		o, err := p.whole(at, body, sound, bad, &room)
		q.found(part, commit, o, err)
	}
	return nil
}

// elsewhere looks at the content of a commit that does not lie in the same pack.
func (q *sift) elsewhere(l *look, part *sifted, commit objects.Object) error {
	if len(commit.Links) == 0 {
		return nil
	}
	o, err := l.object(commit.Links[0])
	if err != nil && !ofOneObject(err) {
		return err
	}
	q.found(part, commit, o, err)
	return nil
}

// found keeps a commit whose content may match, or cannot be read.
func (q *sift) found(part *sifted, commit, content objects.Object, err error) {
	if err == nil && content.Kind != objects.KindList && !q.may(content.Data) {
		return
	}
	commit.Data, content.Data = bytes.Clone(commit.Data), bytes.Clone(content.Data)
	part.found = append(part.found, found{commit, nil}, found{content, err})
}

// passed is the commits that a search came by. Those of the lines before are found
// by their id; a line does not meet itself.
type passed struct {
	ids     [][]objects.ID // each but the last of passedIDs
	table   []int32        // places in ids, from 1
	indexed int            // so many of ids are in the table
}

const passedIDs = 1 << 12

func (p *passed) add(id objects.ID) {
	last := len(p.ids) - 1
	if last < 0 || len(p.ids[last]) == passedIDs {
		p.ids = append(p.ids, make([]objects.ID, 0, passedIDs))
		last++
	}
	p.ids[last] = append(p.ids[last], id)
}

// index takes what was added into the table.
func (p *passed) index() {
	if len(p.ids) == 0 {
		return
	}
	n := (len(p.ids)-1)*passedIDs + len(p.ids[len(p.ids)-1])
	if 2*n > len(p.table) {
		p.table = make([]int32, 1<<bits.Len(uint(4*n)))
		p.indexed = 0
	}
	for ; p.indexed < n; p.indexed++ {
		*p.place(p.id(p.indexed)) = int32(p.indexed + 1)
	}
}

func (p *passed) id(i int) objects.ID { return p.ids[i/passedIDs][i%passedIDs] }

func (p *passed) has(id objects.ID) bool { return p.indexed > 0 && *p.place(id) > 0 }

// place is where an id is in the table, or would be.
func (p *passed) place(id objects.ID) *int32 {
	mask := len(p.table) - 1
	at := int(binary.LittleEndian.Uint64(id[:]) * spread >> (64 - bits.Len(uint(mask))))
	for ; p.table[at] != 0 && p.id(int(p.table[at]-1)) != id; at = (at + 1) & mask {
	}
	return &p.table[at]
}
