package maintain

import (
	"cmp"
	"encoding/binary"
	"os"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// objectTable collects rows about objects and then yields one joined row for each object, in the
// order of the keys. It works like an external sort. Rows are partitioned by the first 8 bits of
// their keys. Each partition keeps its newest rows in memory; when it has rowsPerPartition of them, it
// joins those of the same key, and if more than half remain, appends them to a temporary file as one
// sorted block. each reads one partition after the other: all its blocks and its rows in memory are
// joined again, so that only one partition must fit into memory. A row is 16 bytes in the file; an
// object has one row in each block in which it was read or referred to.
type objectTable struct {
	rowsPerPartition int // of each partition
	parts            [256]partition
	file             *os.File // nil while all rows are in memory
	end              int64    // of the file: where the next block begins
	buffer           []byte   // holds one block, encoded
}

// partition is the rows of a table whose keys begin with the same 8 bits.
type partition struct {
	recent []objectInfo // rows in memory
	blocks []block      // rows in the file
}

// block is a sequence of rows in the file.
type block struct {
	offset int64 // bytes
	rows   int
}

const (
	tableRows = 1 << 10 // rowsPerPartition of an Fsck
	rowSize   = 16      // bytes in the file
)

// add adds a row.
func (t *objectTable) add(info objectInfo) error {
	p := &t.parts[info.key>>56]
	if p.recent = append(p.recent, info); len(p.recent) < t.rowsPerPartition {
		return nil
	}
	if p.recent = sortAndJoinByKey(p.recent); len(p.recent) <= t.rowsPerPartition/2 {
		return nil
	}
	return t.flushPartition(p)
}

// sortAndJoinByKey sorts rows by their keys and joins those of the same object.
func sortAndJoinByKey(rows []objectInfo) []objectInfo {
	slices.SortFunc(rows, func(a, b objectInfo) int { return cmp.Compare(a.key, b.key) })
	n := 0
	for _, row := range rows {
		if n > 0 && rows[n-1].key == row.key {
			rows[n-1].join(row)
			continue
		}
		rows[n] = row
		n++
	}
	return rows[:n]
}

// flushPartition appends the rows in memory of a partition to the file as a block, and creates the
// file if there is none.
func (t *objectTable) flushPartition(p *partition) (err error) {
	if t.file == nil {
		if t.file, err = createTempFile(); err != nil {
			return err
		}
	}
	b := t.buffer[:0]
	for _, row := range p.recent {
		b = binary.LittleEndian.AppendUint64(b, row.key)
		b = binary.LittleEndian.AppendUint32(b, row.value)
		b = append(b, byte(row.kind), byte(row.flags), 0, 0)
	}
	if _, err := t.file.WriteAt(b, t.end); err != nil {
		return err
	}
	p.blocks = append(p.blocks, block{t.end, len(p.recent)})
	t.buffer, t.end, p.recent = b, t.end+int64(len(b)), p.recent[:0]
	return nil
}

// createTempFile creates a temporary file. If the temporary folder is /tmp, which is often in
// memory, it tries /var/tmp first. It removes the name of the file at once, so that a killed
// process leaves no file behind. Windows refuses to remove an open file; there close removes it.
func createTempFile() (f *os.File, err error) {
	const pattern = "tract-fsck-*"
	if os.TempDir() == "/tmp" {
		f, err = os.CreateTemp("/var/tmp", pattern)
	}
	if f == nil || err != nil {
		f, err = os.CreateTemp("", pattern)
	}
	if err == nil {
		_ = os.Remove(f.Name())
	}
	return f, err
}

// each calls visit with the joined row of each object, in the order of the keys, up to an error.
func (t *objectTable) each(visit func(objectInfo) error) error {
	var rows []objectInfo
	for i := range t.parts {
		p := &t.parts[i]
		rows = append(rows[:0], p.recent...)
		for _, at := range p.blocks {
			b := slices.Grow(t.buffer[:0], at.rows*rowSize)[:at.rows*rowSize]
			if _, err := t.file.ReadAt(b, at.offset); err != nil {
				return err
			}
			for t.buffer = b; len(b) > 0; b = b[rowSize:] {
				rows = append(rows, objectInfo{
					key: binary.LittleEndian.Uint64(b), value: binary.LittleEndian.Uint32(b[8:]),
					kind: objects.Kind(b[12]), flags: objectFlags(b[13]),
				})
			}
		}
		for _, row := range sortAndJoinByKey(rows) {
			if err := visit(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// closeAndRemove closes and removes the file, if there is one.
func (t *objectTable) closeAndRemove() {
	if t.file != nil {
		_ = t.file.Close()
		_ = os.Remove(t.file.Name())
	}
}
