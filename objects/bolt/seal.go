package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
)

// sealObjects lays objects together as they will be read: line by line, each commit
// after what it links to. It gives the keys to write for them. A checksum will stand for
// the hash of every object, so those that come from the journal are hashed here: another
// process may have written them, and they have been on a disk. The hauled ones are the
// memory that was hashed when the batch was given, and it still is.
func sealObjects(l *look, records []memtable.Entry, hauled []objects.Object) ([]journal.Change, error) {
	list, err := l.recorded(records)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		list = hauled
	} else {
		list = append(list, hauled...)
	}
	list, changes := apart(list)
	if len(list) == 0 {
		return changes, nil
	}
	n, err := l.nextPack()
	if err != nil {
		return nil, err
	}
	back, err := l.dropTombstones(list)
	if err != nil {
		return nil, err
	}
	changes = append(changes, back...)
	packs, entries := encodePacks(n, cut(inLines(list), young))
	index, err := l.addRun(entries)
	return slices.Concat(changes, packs(), index), err
}

// recorded returns the objects of records that are in no pack yet.
func (l *look) recorded(records []memtable.Entry) ([]objects.Object, error) {
	list := make([]objects.Object, 0, len(records))
	room := make([]objects.ID, 0, len(records))
	for _, r := range records {
		o, err := shareObject(objects.ID(r.Key), r.Value, &room)
		if err == nil {
			err = o.Check()
		}
		if err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return l.unstored(list)
}

// apart takes the objects out of a list that are kept for themselves.
func apart(list []objects.Object) (rest []objects.Object, changes []journal.Change) {
	for i, o := range list {
		if recordSize(&o) < looseSize {
			if changes != nil {
				rest = append(rest, o)
			}
			continue
		}
		if changes == nil {
			rest = slices.Clone(list[:i])
		}
		changes = append(changes, setKey(objectsBucket, bytes.Clone(o.ID[:]), encodeObject(o)))
	}
	if changes == nil {
		return list, nil
	}
	return rest, changes
}

// bodyRooms is the memory of bodies that are written, for the next ones.
var bodyRooms sync.Pool

// recycleBodies gives back the memory of the bodies in a list of changes, once they are in
// the file.
func recycleBodies(list []journal.Change) {
	for _, c := range list {
		if c.Bucket == bodiesBucket && len(c.Value) > 0 {
			body := c.Value[:0]
			bodyRooms.Put(&body)
		}
	}
}

// encodePacks begins to make the packs of some runs, as many at a time as can be, and
// gives where everything lies in them. packs waits for them.
func encodePacks(first uint32, runs [][]objects.Object) (packs func() []journal.Change, entries []indexEntry) {
	changes := make([]journal.Change, 2*len(runs))
	size := 0
	for _, run := range runs {
		size += len(run)
	}
	entries = make([]indexEntry, 0, size)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(runs)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(runs); i = int(next.Add(1)) - 1 {
				n := first + uint32(i)
				memory, _ := bodyRooms.Get().(*[]byte)
				if memory == nil {
					memory = new([]byte)
				}
				head, body := encodePackIn(*memory, n, runs[i], codecRaw)
				changes[2*i], changes[2*i+1] = setKey(headsBucket, packKey(n), head), setKey(bodiesBucket, packKey(n), body)
			}
		})
	}
	for k, run := range runs {
		for i := range run {
			entries = append(entries, newIndexEntry(run[i].ID, place{first + uint32(k), i}))
		}
	}
	return func() []journal.Change { workers.Wait(); return changes }, entries
}

// nextPack is the number of the next pack.
func (l *look) nextPack() (uint32, error) {
	for e, err := range l.descend(headsBucket, []byte{0xff, 0xff, 0xff, 0xff}) {
		if err != nil {
			return 0, err
		}
		if len(e.Key) != 4 {
			return 0, fmt.Errorf("the key of a pack has %d bytes", len(e.Key))
		}
		return binary.BigEndian.Uint32(e.Key) + 1, nil
	}
	return 1, nil
}

// inLines orders objects by the line of their commits. A line goes on with the
// commit whose first parent is its last one; the first to come has it.
func inLines(list []objects.Object) []objects.Object {
	f, order := newFinder(list), make([]int32, 0, len(list))
	lines, taken := commitLines(f), make([]bool, len(list))
	var take func(i int32)
	take = func(i int32) {
		taken[i] = true
		for _, id := range list[i].Links {
			if k := f.find(id); k >= 0 && !taken[k] && list[k].Kind != objects.KindCommit {
				take(k)
			}
		}
		order = append(order, i)
	}
	for _, line := range lines {
		for _, i := range line {
			take(i)
		}
	}
	for i := range list {
		if !taken[i] {
			order = append(order, int32(i))
		}
	}
	if slices.IsSorted(order) {
		return list
	}
	ordered := make([]objects.Object, len(list))
	for i, from := range order {
		ordered[i] = list[from]
	}
	return ordered
}

// commitLines is the commits of a list, line by line.
func commitLines(f *finder) (lines [][]int32) {
	tipOf := make([]int32, len(f.list)) // the line that ends there, and one
	for i := range f.list {
		o := &f.list[i]
		if o.Kind != objects.KindCommit {
			continue
		}
		line := int32(0)
		if len(o.Parents) > 0 {
			if k := f.find(o.Parents[0]); k >= 0 {
				line, tipOf[k] = tipOf[k], 0
			}
		}
		if line == 0 {
			lines = append(lines, nil)
			line = int32(len(lines))
		}
		lines[line-1] = append(lines[line-1], int32(i))
		tipOf[i] = line
	}
	return lines
}

// finder finds the objects of a list by their id. A place is taken from the first
// bytes of an id, and the next free one when another has it; the factor keeps somebody
// who makes many that begin alike from choosing the places.
type finder struct {
	list   []objects.Object
	places []int32 // number in the list, and one
	factor uint64
	shift  int
}

func newFinder(list []objects.Object) *finder {
	size := bits.Len(uint(2 * max(len(list), 8)))
	f := &finder{list: list, places: make([]int32, 1<<size), factor: rand.Uint64() | 1, shift: 64 - size}
	for i := range list {
		if p := f.place(list[i].ID); *p == 0 {
			*p = int32(i) + 1
		}
	}
	return f
}

func (f *finder) place(id objects.ID) *int32 {
	for i := binary.NativeEndian.Uint64(id[:]) * f.factor >> f.shift; ; i = (i + 1) & uint64(len(f.places)-1) {
		if p := &f.places[i]; *p == 0 || f.list[*p-1].ID == id {
			return p
		}
	}
}

// find gives the place of an object in the list; -1: it is not there.
func (f *finder) find(id objects.ID) int32 { return *f.place(id) - 1 }

// cut divides objects into packs. Each is cut after a commit, so that a commit has
// its content beside it, unless none comes for long.
func cut(list []objects.Object, most limits) (runs [][]objects.Object) {
	commits, size, from := 0, 0, 0
	for i := range list {
		size += len(list[i].Data)
		isCommit := list[i].Kind == objects.KindCommit
		if isCommit {
			commits++
		}
		full := isCommit && (commits == most.commits || size >= most.bytes || i-from >= most.objects*3/4)
		if full || i-from+1 == most.objects || size >= 4*most.bytes {
			runs = append(runs, list[from:i+1])
			commits, size, from = 0, 0, i+1
		}
	}
	if from < len(list) {
		runs = append(runs, list[from:])
	}
	return runs
}
