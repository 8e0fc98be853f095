package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	packs "github.com/tract-vcs/tract/internal/pack"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
)

// A pack is some hundred objects that are stored together: a run of commits with what they
// link to. It has two values, so that a history can be walked without reading content:
//
//	head   sum u64, count u16, others u32; the ids of the objects, and those of so many
//	       others that they refer to; then the table of them ([packs.Table])
//	body   sum u64, codec (one byte), the data of what is no commit
//
// With 0x8000 added to the count, the table is in zstd. The checksums cover the key and the
// stored bytes that follow; they are computed only after every object has been hashed and compared
// with its id, so that a reader of a whole pack need not hash.
//
// With 0x4000 added to the count, objects of the pack were purged: the head ends with the
// row of each (u16, ascending) and how many they are (u16), and the codec has 0x80 added.
// The data of a purged object is zeros; all other rows, and the index, stay valid.
const (
	maxPackObjects = packs.MaxObjects // most that one pack holds
	largeSize      = 64 << 10         // an object with so much data has a pack of its own

	packIDs    = 8 + 2 + 4
	packZstd   = 0x8000 // added to the count
	packPurged = 0x4000 // added to the count
	bodyStart  = 8 + 1
	idSize     = len(objects.ID{})
)

// limits are the commits and the bytes after which a pack is full, and the most objects that
// it may have.
type limits struct{ commits, bytes, objects int }

var (
	youngLimits = limits{256, 256 << 10, 1024}
	denseLimits = limits{2048, 512 << 10, maxPackObjects} // written by gc
)

func packKey(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// encodePack encodes the head and the body of a pack, compressed where that is shorter.
func encodePack(n uint32, list []objects.Object, c codec) (head, body []byte) {
	ids, table, body := packs.EncodeTable(list, bodyStart)
	others := len(ids)/idSize - len(list)
	head = make([]byte, 8, packIDs+len(ids)+len(table))
	head = binary.BigEndian.AppendUint16(head, uint16(len(list)))
	head = binary.BigEndian.AppendUint32(head, uint32(others))
	head = append(append(head, ids...), table...)
	body[8] = byte(codecRaw)
	if c == codecZstd {
		head = compressFrom(head, packIDs+len(ids), 8, packZstd>>8)
		body = compressFrom(body, bodyStart, 8, byte(codecZstd))
	}
	rawPack{n, head, body}.setSums()
	return head, body
}

// pack is the parsed head of a pack.
type pack struct {
	*packs.Table

	n      uint32
	ids    []byte   // a part of the head
	purged []uint16 // rows of purged objects, ascending
	sound  bool     // the checksum is valid: its objects need no hashing
}

var errPack = errors.New("the pack is damaged")

// parsePack parses the head of a pack, and keeps b. If the checksum is wrong, a single flipped
// bit is repaired, and every object has to be hashed.
func parsePack(a *arena, n uint32, b []byte) (*pack, error) {
	if len(b) < packIDs {
		return nil, fmt.Errorf("pack %d: %w: a head of %d bytes", n, errPack, len(b))
	}
	sound := hasValidSum(n, b)
	if !sound {
		b = checksum.Repair(packKey(n), b)
	}
	f := parsePackHeader(b)
	if f.end > len(b) {
		return nil, fmt.Errorf("pack %d: %w: %d objects in %d bytes", n, errPack, f.count, len(b))
	}
	ids := b[packIDs:f.end:f.end]
	table, purged, err := f.splitTable(b)
	if err == nil && f.zstd {
		table, err = inflate(a, table)
	}
	p := &pack{n: n, ids: ids, purged: purged, sound: sound}
	if err == nil {
		p.Table, err = packs.ParseTable(f.count, ids, table, a.tableArena())
	}
	switch {
	case sound && errors.Is(err, objects.ErrFormat):
		return nil, fmt.Errorf("pack %d: %w", n, err)
	case err != nil:
		return nil, fmt.Errorf("pack %d: %w: %v", n, errPack, err) //nolint:errorlint // it is damage, whatever it looks like
	}
	return p, nil
}

// hasValidSum reports whether the checksum of a head is valid.
func hasValidSum(n uint32, b []byte) bool {
	return binary.BigEndian.Uint64(b) == checksum.Sum(packKey(n), b[8:])
}

// packHeader is the beginning of a head.
type packHeader struct {
	zstd   bool
	purged bool
	count  int // objects
	others int
	end    int // offset of the end of the ids; beyond any head if the header is impossible
}

// parsePackHeader parses the beginning of a head, which has at least packIDs bytes.
func parsePackHeader(b []byte) (f packHeader) {
	count := binary.BigEndian.Uint16(b[8:])
	f.zstd, f.purged = count&packZstd != 0, count&packPurged != 0
	f.count, f.others = int(count&^(packZstd|packPurged)), int(binary.BigEndian.Uint32(b[10:]))
	if f.end = packIDs + (f.count+f.others)*idSize; f.count > maxPackObjects {
		f.end = math.MaxInt
	}
	return f
}

// splitTable splits what follows the ids of a head into the table and the rows of purged
// objects.
func (f packHeader) splitTable(b []byte) (table []byte, purged []uint16, err error) {
	table = b[f.end:]
	if !f.purged {
		return table, nil, nil
	}
	end := len(table) - 2
	n := 0
	if end >= 0 {
		n = int(binary.BigEndian.Uint16(table[end:]))
		end -= 2 * n
	}
	if end < 0 || n == 0 || n > f.count {
		return table, nil, errors.New("its list of purged objects is invalid")
	}
	for i := range n {
		row := binary.BigEndian.Uint16(table[end+2*i:])
		if int(row) >= f.count || i > 0 && row <= purged[i-1] {
			return table, nil, errors.New("its list of purged objects is invalid")
		}
		purged = append(purged, row)
	}
	return table[:end], purged, nil
}

// idCount returns how many ids the pack has, those of other objects included.
func (p *pack) idCount() int { return len(p.ids) / idSize }

// isPurged reports whether the object of a row was purged.
func (p *pack) isPurged(i int) bool {
	_, found := slices.BinarySearch(p.purged, uint16(i))
	return found
}

// hasUnpurged reports whether an object is at a row, which the pack must have, and was not purged.
func (p *pack) hasUnpurged(row int, id objects.ID) bool { return *p.ID(row) == id && !p.isPurged(row) }
