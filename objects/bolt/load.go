package bolt

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tract-vcs/tract/objects"
)

// A spot says where data lies in the body of a pack whose head was sound:
//
//	number of the file and of the pack, 32 bits each
//	offset in the body and size, 32 bits each
//
// A pack never changes in its file, so that whoever has walked over the head need not
// read it again.

// contentSpot is that of the content of the commit at a slot; zero: it lies elsewhere.
func (l *look) contentSpot(p *pack, slot int) objects.Spot {
	k := p.link(slot)
	if k < 0 || !p.sound || p.kind(k) != objects.KindContent {
		return objects.Spot{}
	}
	s := p.slots[k]
	return objects.Spot{l.number<<32 | uint64(p.n), uint64(s.data)<<32 | uint64(s.size)}
}

func spotPack(s objects.Spot) uint32 { return uint32(s[0]) }

func spotSize(s objects.Spot) int { return int(uint32(s[1])) }

const (
	// loadWorkers is most goroutines that one Load keeps busy.
	loadWorkers = 4
	// loadLeast is less than one of them reads at one look, and loadMost is the most:
	// a writer waits so long, and a block keeps so much in memory.
	loadLeast, loadMost = 512 << 10, 4 << 20
	// loadFew is how many objects of one pack are got by their ids.
	loadFew = 4
)

// Load is objects.Bulk. It reads whole bodies: those of which most is wanted. Data are
// pieces of what was read, and are not copied.
func (s *store) Load(ctx context.Context, w objects.Wanted) (rest []int, err error) {
	order := make([]int32, 0, w.Len)
	size := 0
	for i := range w.Len {
		_, spot := w.At(i)
		if spot == (objects.Spot{}) {
			rest = append(rest, i)
			continue
		}
		order, size = append(order, int32(i)), size+spotSize(spot)
	}
	bySpot := func(a, b int32) int {
		_, x := w.At(int(a))
		_, y := w.At(int(b))
		return slices.Compare(x[:], y[:])
	}
	if !slices.IsSortedFunc(order, bySpot) { // some were said before, or lines were merged
		slices.SortFunc(order, bySpot)
	}
	portions := inPortions(&w, order, min(max(size/(2*loadWorkers), loadLeast), loadMost))
	for i := range portions { // all at once: the collector then runs once, and not whenever memory has doubled
		portions[i].makeRoom(portions[i].size)
	}
	var next atomic.Int64
	var failed atomic.Bool
	work := func() {
		l := loader{store: s, wanted: &w}
		for !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= len(portions) {
				return
			}
			if portions[i].err = l.load(ctx, &portions[i]); portions[i].err != nil {
				failed.Store(true)
			}
		}
	}
	var others sync.WaitGroup
	for range min(loadWorkers, runtime.GOMAXPROCS(0), len(portions)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	for i := range portions {
		if err := portions[i].err; err != nil {
			return nil, err // the first, in whatever order they came
		}
		rest = append(rest, portions[i].rest...)
	}
	slices.Sort(rest)
	return rest, nil
}

// portion is what is read at one look.
type portion struct {
	places []int32 // in the order of their spots
	size   int     // bytes of their bodies, if there is nothing else in them
	room   arena   // for these
	rest   []int   // those that were not found there
	err    error
}

func (b *portion) makeRoom(size int) {
	b.room.bytes = make([]byte, 0, size)
	objects.WillFill(b.room.bytes)
}

// inPortions cuts places between packs into portions of some size.
func inPortions(w *objects.Wanted, order []int32, most int) (list []portion) {
	from, size := 0, 0
	var last uint32
	for i, place := range order {
		_, spot := w.At(int(place))
		if n := spotPack(spot); n != last && size >= most {
			list = append(list, portion{places: order[from:i], size: size})
			from, size = i, 0
		}
		if n := spotPack(spot); n != last {
			last, size = n, size+bodyStart
		}
		size += spotSize(spot)
	}
	if from < len(order) {
		list = append(list, portion{places: order[from:], size: size})
	}
	return list
}

// loader loads one portion after another.
type loader struct {
	store  *store
	wanted *objects.Wanted
	scan   scanning
	pages  arena // for what a look reads besides bodies
	closed arena // for bodies that are to be unpacked
	parts  []part
	object objects.Object
}

// part is what is wanted of one pack.
type part struct {
	pack   uint32
	places []int32
	entry  entry
	size   int    // of all data in the body
	raw    bool   // it is not packed
	body   []byte // as it is kept; nil: it is not read
	sound  bool   // its checksum is right
}

func (l *loader) load(ctx context.Context, b *portion) error {
	l.pages.reset()
	l.closed.reset()
	l.cut(b.places)
	err := l.store.view(ctx, "read", func(k *look) error {
		k.arena, k.scan = &l.pages, &l.scan
		l.find(k, b)
		for i := range l.parts {
			if p := &l.parts[i]; p.size > 0 {
				p.read(&b.room, &l.closed)
			}
		}
		return nil
	})
	for i := range l.parts {
		if err == nil {
			err = l.give(b, &l.parts[i])
		}
	}
	return err
}

// cut makes a part of what is wanted of each pack.
func (l *loader) cut(places []int32) {
	l.parts = l.parts[:0]
	for i, place := range places {
		_, spot := l.wanted.At(int(place))
		if n := spotPack(spot); i == 0 || l.parts[len(l.parts)-1].pack != n {
			l.parts = append(l.parts, part{pack: n, places: places[i:i]})
		}
		last := &l.parts[len(l.parts)-1]
		last.places = last.places[:len(last.places)+1]
	}
}

// find finds the bodies that are to be read, and makes room for them all at once. What
// is wrong with one is said when its objects are got by their ids.
func (l *loader) find(k *look, b *portion) {
	size := 0
	for i := range l.parts {
		p := &l.parts[i]
		wanted, same := 0, true
		for _, place := range p.places {
			_, spot := l.wanted.At(int(place))
			wanted, same = wanted+spotSize(spot), same && spot[0]>>32 == k.number
		}
		if !same || len(p.places) < loadFew {
			continue
		}
		e, err := k.ofPack(bodiesBucket, p.pack)
		if err != nil {
			continue
		}
		begin, err := e.part(0, min(e.valueSize, bodyStart+zstdHead))
		if all := openSize(begin, e.valueSize); err == nil && all <= 2*wanted {
			p.entry, p.size, p.raw = e, all, codec(begin[8]) == codecRaw
			if size += all; p.raw {
				size += bodyStart
			}
		}
	}
	if size > cap(b.room.bytes) {
		b.makeRoom(size)
	}
}

// read reads the body of a part. One that is packed is unpacked later.
func (p *part) read(room, closed *arena) {
	if p.raw {
		closed = room
	}
	b, err := p.entry.valueIn(closed)
	if err != nil {
		return
	}
	if p.raw && p.entry.inHead() { // the next look writes there
		own := room.takeBytes(len(b))
		copy(own, b)
		b = own
	}
	p.body, p.sound = b, soundBody(p.pack, b) // while it is at hand
}

// give gives the objects of a part, if they are what was seen: the checksum stands for
// all of them. That it is the same pack is shown by the hash of one.
func (l *loader) give(b *portion, p *part) error {
	if !p.sound {
		return b.leave(p)
	}
	data, err := openData(&b.room, p.pack, p.body)
	last := len(p.places) - 1
	if err != nil || last < 0 {
		return b.leave(p)
	}
	o := &l.object // one for all: to make one for each takes as long as to read it
	if !l.set(o, data, p.places[last]) || o.Check() != nil {
		return b.leave(p)
	}
	for _, place := range p.places {
		if !l.set(o, data, place) {
			b.rest = append(b.rest, int(place))
			continue
		}
		if err := l.wanted.Give(int(place), o, nil); err != nil {
			return err
		}
	}
	return nil
}

// leave leaves the objects of a part to be got by their ids.
func (b *portion) leave(p *part) error {
	for _, place := range p.places {
		b.rest = append(b.rest, int(place))
	}
	return nil
}

// set makes o the object that is wanted at a place, if the data reaches so far.
func (l *loader) set(o *objects.Object, data []byte, place int32) bool {
	id, spot := l.wanted.At(int(place))
	from := int(spot[1] >> 32)
	to := from + spotSize(spot)
	if to > len(data) {
		return false
	}
	o.ID, o.Kind, o.Data = id, objects.KindContent, data[from:to:to]
	return true
}
