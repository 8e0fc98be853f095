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
	// loadFew is how many objects of one pack are read by their ids instead.
	loadFew = 4
)

// Load is objects.BulkReader. It reads whole bodies of which most is wanted. Data is a part of
// what was read, and is not copied.
func (s *store) Load(ctx context.Context, w objects.LoadRequest) (rest []int, err error) {
	l := loading{store: s, wanted: w}
	aims, size := make([]aim, 0, w.Len), 0
	for i := range w.Len {
		_, spot := w.At(i)
		a, file := aimsAt(spot, i)
		if len(aims) == 0 {
			l.file = file
		}
		if file == 0 || file != l.file {
			l.rest = append(l.rest, i)
			continue
		}
		aims = append(aims, a)
		size += int(a.size)
	}
	if !slices.IsSortedFunc(aims, aim.compare) { // contents are used again, or histories were merged
		slices.SortFunc(aims, aim.compare)
	}
	for from, i := 0, 1; i <= len(aims); i++ {
		if i == len(aims) || aims[i].pack != aims[from].pack {
			l.packs = append(l.packs, aims[from:i])
			from = i
		}
	}
	l.errs = make([]error, len(l.packs))
	count := min(loadWorkers, runtime.GOMAXPROCS(0), len(l.packs))
	var workers sync.WaitGroup
	for range count {
		workers.Go(func() {
			w := &loadWorker{loading: &l}
			w.kept.pieces.Reserve(size / count)
			w.work(ctx)
		})
	}
	workers.Wait()
	for _, err := range l.errs {
		if err != nil {
			return nil, err // of the first pack, so that it does not depend on timing
		}
	}
	slices.Sort(l.rest)
	return l.rest, nil
}

// loading is the state of one Load.
type loading struct {
	store  *store
	wanted objects.LoadRequest
	file   uint64  // that all aims are at
	packs  [][]aim // of one pack each
	errs   []error // of each pack
	next   atomic.Int64
	failed atomic.Bool

	mu   sync.Mutex
	rest []int // objects that are to be read by their ids; guarded by mu
}

// loadWorker is one goroutine of a Load.
type loadWorker struct {
	*loading

	scan    readAdvice
	kept    arena // has the data of the objects, which the caller keeps; it is never reset
	scratch arena // has one compressed body
}

// work loads one pack after another.
func (l *loadWorker) work(ctx context.Context) {
	for !l.failed.Load() {
		i := int(l.next.Add(1)) - 1
		if i >= len(l.packs) {
			return
		}
		if l.errs[i] = l.load(ctx, l.packs[i]); l.errs[i] != nil {
			l.failed.Store(true)
		}
	}
}

// load reads a body and gives the objects in it that are wanted. What is not found, or is
// damaged, is left to be read by its id.
func (l *loadWorker) load(ctx context.Context, aims []aim) error {
	if len(aims) < loadFew {
		return l.leave(aims)
	}
	l.scratch.reset()
	var body []byte
	err := l.store.view(ctx, "read", func(k *snapshot) error {
		if k.number == l.file {
			k.scan = &l.scan
			body = l.wantedBody(k, aims)
		}
		return nil
	})
	if err != nil || body == nil {
		return cmp.Or(err, l.leave(aims))
	}
	// The checksum of the body stands for the hashes of its objects; the hash of one object
	// shows that it is the pack that the walk has seen.
	data, sound, err := decodeBodyData(&l.kept, aims[0].pack, body)
	if err != nil || !sound || codec(body[8])&codecPurged != 0 {
		return l.leave(aims)
	}
	var o objects.Object // one for all: to allocate each takes as long as to read it
	if !l.set(&o, data, aims[len(aims)-1]) || o.Check() != nil {
		return l.leave(aims)
	}
	for i, a := range aims {
		if !l.set(&o, data, a) {
			return l.leave(aims[i:])
		}
		if err := l.wanted.Give(int(a.place), &o, nil); err != nil {
			return err
		}
	}
	return nil
}

// wantedBody reads a body as it is stored if most of it is wanted; nil: it is not, or cannot be
// read.
func (l *loadWorker) wantedBody(k *snapshot, aims []aim) []byte {
	wanted := 0
	for _, a := range aims {
		wanted += int(a.size)
	}
	k = k.withArena(&l.kept) // a short body is a part of its page
	e, err := k.ofPack(bodiesBucket, aims[0].pack)
	if err != nil {
		return nil
	}
	begin, err := e.Part(0, min(e.ValueSize, bodyStart+compression.MaxHeader))
	if err != nil || decodedSize(begin, e.ValueSize) > 2*wanted {
		return nil
	}
	memory := &l.kept
	if codec(begin[8]) == codecZstd {
		memory = &l.scratch // it is decompressed into kept
	}
	body, err := e.ValueIn(memory.pages())
	if err != nil {
		return nil
	}
	return body
}

// leave leaves objects to be read by their ids.
func (l *loading) leave(aims []aim) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range aims {
		l.rest = append(l.rest, int(a.place))
	}
	return nil
}

// set makes o the object of an aim, if the data is long enough.
func (l *loading) set(o *objects.Object, data []byte, a aim) bool {
	to := uint64(a.from) + uint64(a.size)
	if to > uint64(len(data)) {
		return false
	}
	o.ID, _ = l.wanted.At(int(a.place))
	o.Kind, o.Data = objects.KindContent, data[a.from:to:to]
	return true
}
