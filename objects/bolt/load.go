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

// bodyRange is the part of a pack's body that holds one object to load. index is that of the object
// in the request.
type bodyRange struct {
	pack, from, size uint32
	index            int32
}

// decodeLocator returns the range that a locator names, and the number of its file.
func decodeLocator(s objects.Locator, index int) (a bodyRange, file uint64) {
	return bodyRange{uint32(s[0]), uint32(s[1] >> 32), uint32(s[1]), int32(index)}, s[0] >> 32
}

func (a bodyRange) compare(b bodyRange) int {
	return cmp.Or(cmp.Compare(a.pack, b.pack), cmp.Compare(a.from, b.from))
}

const (
	// loadWorkers is the most goroutines of one Load.
	loadWorkers = 4
	// loadFew is how many objects of one pack are read by their ids instead.
	loadFew = 4
	// maxReserved is the most bytes that Load allocates before it has read anything: sizes in a file may be wrong.
	maxReserved = 256 << 20
)

// Load is objects.BulkReader. It reads whole bodies of which most is wanted. Data is a part of
// what was read, and is not copied.
func (s *store) Load(ctx context.Context, w objects.LoadRequest) (rest []int, err error) {
	l := loading{store: s, wanted: w}
	ranges, size := make([]bodyRange, 0, w.Len), 0
	for i := range w.Len {
		_, spot := w.At(i)
		a, file := decodeLocator(spot, i)
		if len(ranges) == 0 {
			l.file = file
		}
		if file == 0 || file != l.file {
			l.rest = append(l.rest, i)
			continue
		}
		ranges = append(ranges, a)
		size += int(a.size)
	}
	if !slices.IsSortedFunc(ranges, bodyRange.compare) { // contents are used again, or histories were merged
		slices.SortFunc(ranges, bodyRange.compare)
	}
	for from, i := 0, 1; i <= len(ranges); i++ {
		if i == len(ranges) || ranges[i].pack != ranges[from].pack {
			l.packs = append(l.packs, ranges[from:i])
			from = i
		}
	}
	l.errs = make([]error, len(l.packs))
	count := min(loadWorkers, runtime.GOMAXPROCS(0), len(l.packs))
	var workers sync.WaitGroup
	for range count {
		workers.Go(func() {
			w := &loadWorker{loading: &l}
			w.kept.pieces.Reserve(min(size, maxReserved) / count)
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
	file   uint64        // that all ranges are at
	packs  [][]bodyRange // of one pack each
	errs   []error       // of each pack
	next   atomic.Int64
	failed atomic.Bool

	mu   sync.Mutex
	rest []int // objects that are to be read by their ids; guarded by mu
}

// loadWorker is one goroutine of a Load.
type loadWorker struct {
	*loading

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
		unread, err := l.load(ctx, l.packs[i])
		l.mu.Lock()
		for _, a := range unread {
			l.rest = append(l.rest, int(a.index))
		}
		l.mu.Unlock()
		if l.errs[i] = err; err != nil {
			l.failed.Store(true)
		}
	}
}

// load reads a body and gives the objects in it that are wanted. It returns the ranges of those that it
// did not find, or that may be damaged: they are read by their ids.
func (l *loadWorker) load(ctx context.Context, ranges []bodyRange) (unread []bodyRange, err error) {
	if len(ranges) < loadFew {
		return ranges, nil
	}
	l.scratch.reset()
	var body []byte
	err = l.store.view(ctx, "read", func(k *snapshot) error {
		if k.fileNumber == l.file {
			body = l.readBodyIfMostlyWanted(k, ranges)
		}
		return nil
	})
	if err != nil || body == nil {
		return ranges, err
	}
	// The checksum of the body stands for the hashes of its objects; the hash of one object
	// shows that it is the pack that the walk has seen.
	data, sound, err := decodeBodyData(&l.kept, ranges[0].pack, body)
	var o objects.Object // one for all: to allocate each takes as long as to read it
	intact := err == nil && sound && codec(body[8])&codecPurged == 0 && l.setUncheckedObject(&o, data, ranges[len(ranges)-1]) && o.Check() == nil
	if !intact {
		return ranges, nil
	}
	for i, a := range ranges {
		if !l.setUncheckedObject(&o, data, a) {
			return ranges[i:], nil
		}
		if err := l.wanted.Give(int(a.index), &o, nil); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// readBodyIfMostlyWanted reads a body as it is stored if most of it is wanted; nil: it is not, or cannot
// be read.
func (l *loadWorker) readBodyIfMostlyWanted(k *snapshot, ranges []bodyRange) []byte {
	wanted := 0
	for _, a := range ranges {
		wanted += int(a.size)
	}
	e, err := k.packPart(bodiesBucket, ranges[0].pack)
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
	body, err := e.ValueIn(memory.pageArena())
	if err != nil {
		return nil
	}
	return body
}

// setUncheckedObject sets o to the object at a range of the body data, which is not compared with its id.
// inRange reports whether the data is long enough.
func (l *loading) setUncheckedObject(o *objects.Object, data []byte, a bodyRange) (inRange bool) {
	to := uint64(a.from) + uint64(a.size)
	if to > uint64(len(data)) {
		return false
	}
	o.ID, _ = l.wanted.At(int(a.index))
	o.Kind, o.Data = objects.KindContent, data[a.from:to:to]
	return true
}
