package bolt

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tract-vcs/tract/internal/compression"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// A locator says where data lies in the body of a pack whose head was sound:
//
//	number of the file and of the pack, 32 bits each
//	offset in the body and size, 32 bits each
//
// A pack never changes in its file, so a caller that has walked over the head need not read
// it again.

// aim is one object to load: where it is in the present file, and its place in the request.
type aim struct {
	pack, from, size uint32
	place            int32
}

// aimsAt decodes a locator into an aim and the number of its file.
func aimsAt(s objects.Locator, place int) (a aim, file uint64) {
	return aim{uint32(s[0]), uint32(s[1] >> 32), uint32(s[1]), int32(place)}, s[0] >> 32
}

func (a aim) compare(b aim) int {
	return cmp.Or(cmp.Compare(a.pack, b.pack), cmp.Compare(a.from, b.from))
}

const (
	// loadWorkers is the most goroutines of one Load.
	loadWorkers = 4
	// portionLeast and portionMost bound what one of them reads in one snapshot, for which a
	// writer waits.
	portionLeast, portionMost = 512 << 10, 4 << 20
	// bodyMore is memory for data of a body that is not wanted.
	bodyMore = 1 << 10
	// loadFew is how many objects of one pack are read by their ids instead.
	loadFew = 4
)

// Load is objects.BulkReader. It reads whole bodies of which most is wanted. Data is a part of
// what was read, and is not copied.
func (s *store) Load(ctx context.Context, w objects.LoadRequest) (rest []int, err error) {
	l := loading{store: s, wanted: w}
	own := loaders.Get().(*loader) //nolint:forcetypeassert // it holds nothing else
	defer own.done()
	aims := slices.Grow(own.aims[:0], w.Len)
	own.aims = aims
	for i := range w.Len {
		_, spot := w.At(i)
		a, file := aimsAt(spot, i)
		if len(aims) == 0 {
			l.file = file
		}
		if file == 0 || file != l.file {
			rest = append(rest, i)
			continue
		}
		aims = append(aims, a)
	}
	if !slices.IsSortedFunc(aims, aim.compare) { // contents are used again, or histories were merged
		slices.SortFunc(aims, aim.compare)
	}
	l.splitPortions(aims)
	l.workBeside(ctx, own)
	for i := range l.portions {
		if err := l.portions[i].err; err != nil {
			return nil, err // of the first portion, so that it does not depend on timing
		}
		rest = append(rest, l.portions[i].rest...)
	}
	slices.Sort(rest)
	return rest, nil
}

// loading is the state of one Load.
type loading struct {
	store    *store
	wanted   objects.LoadRequest
	file     uint64 // that all aims are at
	portions []portion
	next     atomic.Int64
	failed   atomic.Bool
}

// portion is what is read in one snapshot.
type portion struct {
	aims []aim
	room arena // for bodies
	rest []int // those that were not found
	err  error
}

// splitPortions divides aims into portions at pack boundaries, enough of them for every worker.
func (l *loading) splitPortions(aims []aim) {
	size := 0
	for i := range aims {
		size += int(aims[i].size)
	}
	enough := min(max(size/(2*loadWorkers), portionLeast), portionMost)
	from, size := 0, 0
	for i := range aims {
		if i == 0 || aims[i].pack != aims[i-1].pack {
			if size >= enough {
				l.portions = append(l.portions, portion{aims: aims[from:i]})
				from, size = i, 0
			}
			size += bodyStart + bodyMore
		}
		size += int(aims[i].size)
	}
	if from < len(aims) {
		l.portions = append(l.portions, portion{aims: aims[from:]})
	}
}

// workBeside calls work in several goroutines and waits for them.
func (l *loading) workBeside(ctx context.Context, own *loader) {
	var others sync.WaitGroup
	for range min(loadWorkers, runtime.GOMAXPROCS(0), len(l.portions)) - 1 {
		others.Go(func() {
			w := loaders.Get().(*loader) //nolint:forcetypeassert // it holds nothing else
			defer w.done()
			l.work(ctx, w)
		})
	}
	l.work(ctx, own)
	others.Wait()
}

// work loads one portion after another.
func (l *loading) work(ctx context.Context, w *loader) {
	w.loading = l
	for !l.failed.Load() {
		i := int(l.next.Add(1)) - 1
		if i >= len(l.portions) {
			return
		}
		if l.portions[i].err = w.load(ctx, &l.portions[i]); l.portions[i].err != nil {
			l.failed.Store(true)
		}
	}
}

// loader is the memory of one worker, which is used again.
type loader struct {
	*loading
	scan   readAdvice
	aims   []aim // of the request
	pages  arena // for pages
	closed arena // for compressed bodies
	parts  []part
	object objects.Object
}

var loaders = sync.Pool{New: func() any { return new(loader) }}

func (l *loader) done() {
	l.loading, l.scan, l.object = nil, readAdvice{}, objects.Object{}
	clear(l.parts[:cap(l.parts)]) // or a body would be kept
	loaders.Put(l)
}

// part is what is wanted of one pack.
type part struct {
	aims  []aim
	entry page.Entry
	size  int    // of all data in the body; 0: the body is not read
	raw   bool   // it is not compressed
	body  []byte // as it is stored; nil: it was not read
}

func (l *loader) load(ctx context.Context, b *portion) error {
	l.pages.reset()
	l.closed.reset()
	l.parts = l.parts[:0]
	for from, i := 0, 1; i <= len(b.aims); i++ {
		if i == len(b.aims) || b.aims[i].pack != b.aims[from].pack {
			l.parts = append(l.parts, part{aims: b.aims[from:i]})
			from = i
		}
	}
	err := l.store.view(ctx, "read", func(k *snapshot) error {
		if k.number != l.file {
			return nil
		}
		k.useArena(&l.pages)
		k.scan = &l.scan
		l.find(k, b)
		for i := range l.parts {
			l.parts[i].read(&b.room, &l.closed)
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

// find finds the bodies to read. An error of a body is reported when its objects are read by
// their ids.
func (l *loader) find(k *snapshot, b *portion) {
	size := 0
	for i := range l.parts {
		p := &l.parts[i]
		if len(p.aims) < loadFew {
			continue
		}
		wanted := 0
		for _, a := range p.aims {
			wanted += int(a.size)
		}
		e, err := k.ofPack(bodiesBucket, p.aims[0].pack)
		if err != nil {
			continue
		}
		begin, err := e.Part(0, min(e.ValueSize, bodyStart+compression.MaxHeader))
		if all := decodedSize(begin, e.ValueSize); err == nil && all <= 2*wanted {
			p.entry, p.size, p.raw = e, all, codec(begin[8]) == codecRaw
			if size += all; p.raw {
				size += bodyStart
			} else {
				size += compression.Slack
			}
		}
	}
	b.room.pieces.Buf = make([]byte, 0, size)
}

// read reads the body of a part. A compressed one is decompressed later, without a lock.
func (p *part) read(room, closed *arena) {
	if p.size == 0 {
		return
	}
	if p.raw {
		closed = room
	}
	b, err := p.entry.ValueIn(closed.pages())
	if err != nil {
		return
	}
	if p.body = b; p.raw && p.entry.Buffered() { // its memory is used for the next portion
		p.body = room.takeBytes(len(b))
		copy(p.body, b)
	}
}

// give passes the objects of a part on. The checksum of the body stands for their hashes; the
// hash of one object shows that it is the pack that the walk has seen.
func (l *loader) give(b *portion, p *part) error {
	data, sound, err := decodeBodyData(&b.room, p.aims[0].pack, p.body)
	if err != nil || !sound || codec(p.body[8])&codecPurged != 0 {
		return b.deferToLookup(p)
	}
	o := &l.object // one for all: to allocate each takes as long as to read it
	if !l.set(o, data, p.aims[len(p.aims)-1]) || o.Check() != nil {
		return b.deferToLookup(p)
	}
	for _, a := range p.aims {
		if !l.set(o, data, a) {
			b.rest = append(b.rest, int(a.place))
			continue
		}
		if err := l.wanted.Give(int(a.place), o, nil); err != nil {
			return err
		}
	}
	return nil
}

// deferToLookup leaves the objects of a part to be read by their ids.
func (b *portion) deferToLookup(p *part) error {
	for _, a := range p.aims {
		b.rest = append(b.rest, int(a.place))
	}
	return nil
}

// set makes o the object of an aim, if the data is long enough.
func (l *loader) set(o *objects.Object, data []byte, a aim) bool {
	to := uint64(a.from) + uint64(a.size)
	if to > uint64(len(data)) {
		return false
	}
	o.ID, _ = l.wanted.At(int(a.place))
	o.Kind, o.Data = objects.KindContent, data[a.from:to:to]
	return true
}
