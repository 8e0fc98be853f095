package maintain

import (
	"cmp"
	"encoding/binary"
	"os"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// objectTable has a row for each object that the store contains or refers to. It is partitioned by
// the first bits of the keys. Rows that do not fit into memory are written to a temporary file: 16
// bytes each, and one or a few rows for each object.
type objectTable struct {
	rows  int // of a partition that stay in memory
	parts [256]partition
	file  *os.File // nil: everything is in memory
	end   int64    // of the file
	room  []byte   // for a block
}

// partition is the rows of a table whose keys begin with the same 8 bits.
type partition struct {
	recent []objectInfo // in memory
	blocks []block      // in the file
}

// block is where rows are in the file.
type block struct {
	offset int64
	rows   int
}

const (
	tableRows = 1 << 10
	rowSize   = 16 // in the file
)

// add adds a row, which is joined with the other rows of the same object when the table is read.
func (t *objectTable) add(info objectInfo) error {
	p := &t.parts[info.key>>56]
	if p.recent = append(p.recent, info); len(p.recent) < t.rows {
		return nil
	}
	if p.recent = joined(p.recent); len(p.recent) <= t.rows/2 {
		return nil
	}
	return t.write(p)
}

// joined sorts rows by their keys and joins those of the same object.
func joined(rows []objectInfo) []objectInfo {
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

// write moves the rows of a partition to the file.
func (t *objectTable) write(p *partition) (err error) {
	if t.file == nil {
		if t.file, err = tempFile(); err != nil {
			return err
		}
	}
	b := t.room[:0]
	for _, row := range p.recent {
		b = binary.LittleEndian.AppendUint64(b, row.key)
		b = binary.LittleEndian.AppendUint32(b, row.value)
		b = append(b, byte(row.kind), byte(row.flags), 0, 0)
	}
	if _, err := t.file.WriteAt(b, t.end); err != nil {
		return err
	}
	p.blocks = append(p.blocks, block{t.end, len(p.recent)})
	t.room, t.end, p.recent = b, t.end+int64(len(b)), p.recent[:0]
	return nil
}

// tempFile creates a temporary file. /tmp is often in memory: /var/tmp is tried first. The name is
// removed at once, so that a process that is killed leaves nothing; Windows refuses that while the
// file is open, and close removes the name there.
func tempFile() (f *os.File, err error) {
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

// each calls visit with what is known of each object, in the order of the keys.
func (t *objectTable) each(visit func(objectInfo) error) error {
	var rows []objectInfo
	for i := range t.parts {
		p := &t.parts[i]
		rows = append(rows[:0], p.recent...)
		for _, at := range p.blocks {
			b := slices.Grow(t.room[:0], at.rows*rowSize)[:at.rows*rowSize]
			if _, err := t.file.ReadAt(b, at.offset); err != nil {
				return err
			}
			for t.room = b; len(b) > 0; b = b[rowSize:] {
				rows = append(rows, objectInfo{
					key: binary.LittleEndian.Uint64(b), value: binary.LittleEndian.Uint32(b[8:]),
					kind: objects.Kind(b[12]), flags: objectFlags(b[13]),
				})
			}
		}
		for _, row := range joined(rows) {
			if err := visit(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// close removes the file.
func (t *objectTable) close() {
	if t.file != nil {
		_ = t.file.Close()
		_ = os.Remove(t.file.Name())
	}
}
