package bolt

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"os"
	"slices"

	"github.com/tract-vcs/tract/safefile"
)

// bbolt leaves pages free where it has written twice, and a page more than it needs at
// the end. In a small store that is a tenth of the file. So when gc is done with a small
// file it is laid out anew, as bbolt could have written it at best: no page is free, each
// is as full as can be, and buckets of less than a quarter of a page lie in that of the
// root for as long as there is room.

// tightMost is the largest file that is laid out anew: what is saved does not grow with
// the file.
const tightMost = 16 << 20

const (
	metaPage = 0x04
	fewCells = 4 // bbolt does not divide a page that has no more
	fewPages = 8
)

// layout is a file that is being laid out.
type layout struct {
	pageSize int
	file     []byte
}

// cell is an element of a page: of a leaf it has a value, of a branch a child.
type cell struct {
	key, value []byte
	flags      uint32
	child      uint64
}

func (c cell) size() int { return elementSize + len(c.key) + len(c.value) }

func sizeOf(cells []cell) int {
	n := pageHeader
	for _, c := range cells {
		n += c.size()
	}
	return n
}

// layOut makes a file of rows, those of a bucket in the order of their keys.
func layOut(rows map[string][]cell, pageSize int) []byte {
	f := &layout{pageSize: pageSize, file: make([]byte, 4*pageSize)}
	root := make([]cell, 0, len(buckets))
	bySize := slices.SortedFunc(slices.Values(buckets[:]), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizeOf(rows[a]), sizeOf(rows[b])), cmp.Compare(a, b))
	})
	left := pageSize - pageHeader
	for _, name := range bySize {
		left -= cell{key: []byte(name)}.size() + pageHeader
	}
	for _, name := range bySize {
		value := make([]byte, pageHeader) // the page of the root, and a sequence that nobody counts
		if n := sizeOf(rows[name]); n <= min(left, pageSize/4) {
			value, left = append(value, make([]byte, n)...), left-n
			writePage(value[pageHeader:], leafPage, rows[name])
		} else {
			order.PutUint64(value, f.tree(rows[name]))
		}
		root = append(root, cell{key: []byte(name), value: value, flags: subBucket})
	}
	slices.SortFunc(root, func(a, b cell) int { return bytes.Compare(a.key, b.key) })
	const rootID, freeID = 2, 3
	writePage(f.at(rootID), leafPage, root)
	writePage(f.at(freeID), freelistPage, nil)
	for id := range uint64(2) {
		b := f.at(id)
		writePage(b, metaPage, nil)
		b = b[pageHeader:]
		order.PutUint32(b, boltMagic)
		order.PutUint32(b[4:], boltVersion)
		order.PutUint32(b[8:], uint32(pageSize))
		order.PutUint64(b[16:], rootID)
		order.PutUint64(b[32:], freeID)
		order.PutUint64(b[40:], uint64(len(f.file)/pageSize))
		order.PutUint64(b[48:], id) // the transaction: the second page is the newer
		sum := fnv.New64a()
		_, _ = sum.Write(b[:56])
		order.PutUint64(b[56:], sum.Sum64())
	}
	return f.file
}

// at is a page that has been taken, with its number in it.
func (f *layout) at(id uint64) []byte {
	b := f.file[int(id)*f.pageSize:][:f.pageSize]
	order.PutUint64(b, id)
	return b
}

// tree lays out the leaves of a bucket and what leads to them, and gives its root.
func (f *layout) tree(rows []cell) (root uint64) {
	level := f.level(leafPage, rows)
	for len(level) > 1 {
		level = f.level(branchPage, level)
	}
	return level[0].child
}

// level lays out pages of one kind and gives the elements that lead to them.
func (f *layout) level(flags uint16, cells []cell) (above []cell) {
	for len(cells) > 0 {
		n := f.fit(cells)
		if flags == branchPage && len(cells) == n+1 {
			n-- // bbolt never has a branch with one child
		}
		pages := (sizeOf(cells[:n]) + f.pageSize - 1) / f.pageSize
		id := uint64(len(f.file) / f.pageSize)
		f.file = append(f.file, make([]byte, pages*f.pageSize)...)
		b := f.file[int(id)*f.pageSize:]
		order.PutUint64(b, id)
		order.PutUint32(b[12:], uint32(pages-1))
		writePage(b, flags, cells[:n])
		above = append(above, cell{key: cells[0].key, child: id})
		cells = cells[n:]
	}
	return above
}

// fit is how many cells lie in a page, which is as long as the first of them needs. A
// few lie in one that is longer, as bbolt has it.
func (f *layout) fit(cells []cell) (n int) {
	if len(cells) <= fewCells && sizeOf(cells) <= fewPages*f.pageSize {
		return len(cells)
	}
	size := pageHeader + cells[0].size()
	room := (size + f.pageSize - 1) / f.pageSize * f.pageSize
	for n = 1; n < len(cells) && size+cells[n].size() <= room; n++ {
		size += cells[n].size()
	}
	return n
}

// writePage writes all of a page but its number and its length.
func writePage(b []byte, flags uint16, cells []cell) {
	order.PutUint16(b[8:], flags)
	order.PutUint16(b[10:], uint16(len(cells)))
	at := pageHeader + len(cells)*elementSize
	for i, c := range cells {
		e := b[pageHeader+i*elementSize:]
		pos := uint32(at - pageHeader - i*elementSize)
		if flags == branchPage {
			order.PutUint32(e, pos)
			order.PutUint32(e[4:], uint32(len(c.key)))
			order.PutUint64(e[8:], c.child)
		} else {
			order.PutUint32(e, c.flags)
			order.PutUint32(e[4:], pos)
			order.PutUint32(e[8:], uint32(len(c.key)))
			order.PutUint32(e[12:], uint32(len(c.value)))
		}
		at += copy(b[at:], c.key)
		at += copy(b[at:], c.value)
	}
}

// rowsOf reads all rows of a file.
func rowsOf(l *look) (rows map[string][]cell, err error) {
	rows = map[string][]cell{}
	for _, name := range buckets {
		for e, err := range l.scanTree(name, nil, false) {
			var value []byte
			if err == nil {
				value, err = e.value()
			}
			if err != nil {
				return nil, fmt.Errorf("bucket %q: %w", name, err)
			}
			rows[name] = append(rows[name], cell{key: e.key, value: value})
		}
	}
	return rows, nil
}

// tighten lays out anew what is in a small file that nobody has a name for yet, and
// makes it durable.
func tighten(path string) error {
	f, err := safefile.Policy{}.Open(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || info.Size() > tightMost {
		return err
	}
	if free, err := lockFile(f, true, false); err != nil || !free { // else another gc takes it for left
		return fmt.Errorf("lock %s: %w", path, cmp.Or(err, errHeld))
	}
	m, err := readMeta(f, info.Size())
	if err != nil {
		return err
	}
	rows, err := rowsOf(newLook(f, m))
	if err != nil {
		return err
	}
	b := layOut(rows, m.pageSize)
	if err := sameRows(b, rows); err != nil {
		return fmt.Errorf("the new file: %w", err)
	}
	if len(b) > int(info.Size()) {
		return nil
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(b))); err != nil {
		return err
	}
	return f.Sync()
}

// sameRows reads a file as any reader would, and holds it to what it is to have.
func sameRows(b []byte, rows map[string][]cell) error {
	file := bytes.NewReader(b)
	m, err := readMeta(file, file.Size())
	if err == nil {
		err = checkFreelist(file, m)
	}
	if err != nil {
		return err
	}
	have, err := rowsOf(newLook(file, m))
	if err != nil {
		return err
	}
	for _, name := range buckets {
		same := func(a, b cell) bool { return bytes.Equal(a.key, b.key) && bytes.Equal(a.value, b.value) }
		if !slices.EqualFunc(have[name], rows[name], same) {
			return fmt.Errorf("bucket %q is not what it was", name)
		}
	}
	return nil
}
