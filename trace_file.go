package tract

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"strings"

	"github.com/tract-vcs/tract/objects"
)

// The file of an index of thoughts: a line that names the format, a checksum
// (CRC-32C, little-endian) of what follows, then the tips, the names and the
// thoughts, each with its count first. Numbers are unsigned varints. A file that is
// anything else counts as none.

const traceFormat = "tract traces 2\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxTraceFile is the most bytes of a file that are read: those of a million thoughts.
const maxTraceFile = 512 << 20

// read fills the index from its file.
func (x *traceIndex) read() {
	f, err := x.files.Open(x.file, os.O_RDONLY, 0)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || info.Size() > maxTraceFile {
		return
	}
	b, err := io.ReadAll(io.LimitReader(f, maxTraceFile))
	body, ok := bytes.CutPrefix(b, []byte(traceFormat))
	if err != nil || !ok || len(body) < 4 || crc32.Checksum(body[4:], castagnoli) != binary.LittleEndian.Uint32(body) {
		return
	}
	r := &recordReader{rest: body[4:]}
	for n := r.number(); n > 0 && !r.failed; n-- {
		id := r.id()
		x.tips[id] = uint32(r.number()) //nolint:gosec // as it was written
	}
	for n := r.number(); n > 0 && !r.failed; n-- {
		x.name(string(r.bytes()))
	}
	if r.failed {
		x.forget()
		return
	}
	n := r.number()
	x.list = make([]thought, 0, min(n, uint64(len(r.rest))))
	for range n {
		t := thought{id: r.id(), at: int64(r.number()), depth: r.number(), turn: uint32(r.number())}                             //nolint:gosec // as it was written
		t.session, t.model, t.source, t.reported = uint32(r.number()), uint32(r.number()), uint32(r.number()), int64(r.number()) //nolint:gosec // as it was written
		if t.marks = r.bytes(); r.failed || max(t.session, t.model, t.source) >= uint32(len(x.names)) {                          //nolint:gosec // a length
			x.forget()
			return
		}
		x.list = append(x.list, t)
	}
}

// write makes the file anew. That it cannot be written is no error: it is made again
// when it is wanted.
func (x *traceIndex) write() {
	b := make([]byte, len(traceFormat)+4, 1<<20)
	copy(b, traceFormat)
	b = binary.AppendUvarint(b, uint64(len(x.tips)))
	for id, turn := range x.tips {
		b = binary.AppendUvarint(append(b, id[:]...), uint64(turn))
	}
	b = binary.AppendUvarint(b, uint64(len(x.names)))
	for _, name := range x.names {
		b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
	}
	b = binary.AppendUvarint(b, uint64(len(x.list)))
	for i := range x.list {
		t := &x.list[i]
		b = append(b, t.id[:]...)
		for _, n := range []uint64{
			uint64(t.at), t.depth, uint64(t.turn), uint64(t.session), uint64(t.model), uint64(t.source), //nolint:gosec // read back the same
			uint64(t.reported), uint64(len(t.marks)), //nolint:gosec // read back the same
		} {
			b = binary.AppendUvarint(b, n)
		}
		b = append(b, t.marks...)
	}
	binary.LittleEndian.PutUint32(b[len(traceFormat):], crc32.Checksum(b[len(traceFormat)+4:], castagnoli))
	temp, err := os.CreateTemp(filepath.Dir(x.file), filepath.Base(x.file)+".*")
	if err != nil {
		return
	}
	_, err = temp.Write(b)
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err != nil || os.Rename(temp.Name(), x.file) != nil {
		os.Remove(temp.Name()) //nolint:errcheck // it is only in the way
	}
}

// removeIndex takes the file away, and what is left of tries to write it. That there is
// none is no error.
func removeIndex(file string) error {
	written, err := filepath.Glob(globbed.Replace(file) + ".*")
	for _, name := range append(written, file) {
		if bad := os.Remove(name); !errors.Is(bad, fs.ErrNotExist) {
			err = errors.Join(err, bad)
		}
	}
	return err
}

// globbed has a path stand for itself in a pattern.
var globbed = strings.NewReplacer("*", "\\*", "?", "\\?", "[", "\\[", "\\", "\\\\")

// sinceErased is the time between two erasures, by whichever process.
type sinceErased struct{ _ byte }

// sinceErased is always the same until something is erased. The store forgets it then.
func (r *Repo) sinceErased() *sinceErased {
	store, ok := objects.As[objects.Rememberer](r.store)
	if !ok {
		return nil
	}
	return store.Memo().Get(sinceErased{}, func() any { return &sinceErased{} }).(*sinceErased)
}

// recordReader takes a body apart. Once something is missing it gives zeros.
type recordReader struct {
	rest   []byte
	failed bool
}

func (r *recordReader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.rest, r.failed = nil, true
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *recordReader) bytes() []byte { return r.take(r.number()) }

func (r *recordReader) id() (id objects.ID) {
	copy(id[:], r.take(uint64(len(id))))
	return id
}

func (r *recordReader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.rest, r.failed = nil, true
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// What words have is kept as marks: a bit for each three bytes that follow one
// another in them, in lower case, at a place that depends on the three. A text that
// has a word has all of its marks; one that has not may have them too, by chance of
// about 1 in 3 for each.

// markBits is the bits for each different three.
const markBits = 3

// threes adds the threes of a text to a list.
func threes(list []uint32, text []byte) []uint32 {
	for i := 2; i < len(text); i++ {
		three := uint32(lower[text[i-2]])<<16 | uint32(lower[text[i-1]])<<8 | uint32(lower[text[i]])
		list = append(list, three*0x9E3779B1)
	}
	return list
}

// marksOf is the marks of a text; none when it has less than three bytes.
func marksOf(text string) []byte {
	var seen [1 << 12]uint64 // of the upper bits of a three
	distinct := 0
	list := threes(make([]uint32, 0, len(text)), []byte(text))
	for _, three := range list {
		if at, bit := three>>20, uint64(1)<<(three>>14&63); seen[at]&bit == 0 {
			seen[at] |= bit
			distinct++
		}
	}
	marks := make([]byte, (distinct*markBits+7)/8)
	for _, three := range list {
		at := markPlace(three, len(marks))
		marks[at/8] |= 1 << (at % 8)
	}
	return marks
}

// markPlace is the bit of a three among those of so many bytes.
func markPlace(three uint32, size int) int {
	high, _ := bits.Mul32(three, uint32(size)*8) //nolint:gosec // a few kilobytes
	return int(high)
}

// marked tells whether all threes may stand in a text.
func marked(marks []byte, words []uint32) bool {
	if len(marks) == 0 {
		return len(words) == 0
	}
	for _, three := range words {
		if at := markPlace(three, len(marks)); marks[at/8]&(1<<(at%8)) == 0 {
			return false
		}
	}
	return true
}
