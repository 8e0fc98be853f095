package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	packs "github.com/tract-vcs/tract/internal/pack"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
)

// A pack is some hundred objects that lie together: a run of commits with what
// they link to. It has two values, so that a history can be walked without what
// was said:
//
//	head   sum u64, count u16, others u32; the ids of the objects, and those of so many
//	       others that they lead to; then the table of them ([packs.Table])
//	body   sum u64, codec (one byte), the data of what is no commit
//
// With 0x8000 added to the count, the table is in zstd. The sums are over the key and
// what follows them, as it is kept; they are made when every object has been hashed
// and compared with its id, so that who reads a whole pack need not hash.
//
// With 0x4000 added to the count, objects of the pack were purged: the head ends with the
// row of each (u16, ascending) and how many they are (u16), and the codec has 0x80 added.
// The data of an purged object is zeros; all other rows, and the index, stay valid.
const (
	packObjects = packs.MaxObjects // most that one pack holds
	looseSize   = 64 << 10         // records from this size on are stored alone

	packIDs    = 8 + 2 + 4
	packZstd   = 0x8000 // added to the count
	packPurged = 0x4000 // added to the count
	bodyStart  = 8 + 1
	idSize     = len(objects.ID{})
)

// limits say when a pack is full: after so many commits or so much data, and in any
// case with so many objects.
type limits struct{ commits, bytes, objects int }

var (
	young = limits{256, 256 << 10, 1024}
	dense = limits{2048, 512 << 10, packObjects} // when the store is packed closely
)

func packKey(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// tableArenas are for the tables of packs that are encoded.
var tableArenas = sync.Pool{New: func() any { return new(packs.Arena) }}

// encodePack encodes the head and the body of a pack, compressed where that is shorter.
func encodePack(n uint32, list []objects.Object, c codec) (head, body []byte) {
	room := tableArenas.Get().(*packs.Arena) //nolint:forcetypeassert // it holds nothing else
	defer tableArenas.Put(room)
	room.Reset()
	ids, table, body := packs.EncodeTable(list, bodyStart, room)
	others := len(ids)/idSize - len(list)
	head = make([]byte, 8, packIDs+len(ids)+len(table))
	head = binary.BigEndian.AppendUint16(head, uint16(len(list)))
	head = binary.BigEndian.AppendUint32(head, uint32(others))
	head = append(append(head, ids...), table...)
	body[8] = byte(codecRaw)
	if c == codecZstd {
		head, body = compressHead(head, packIDs+len(ids)), compressBody(body)
	}
	key := packKey(n)
	binary.BigEndian.PutUint64(head, checksum.Sum(key, head[8:]))
	binary.BigEndian.PutUint64(body, checksum.Sum(key, body[8:]))
	return head, body
}

// pack is the head of one.
type pack struct {
	*packs.Table

	n      uint32
	ids    []byte   // a piece of the head
	purged []uint16 // rows of purged objects, ascending
	sound  bool     // its checksum is right: its objects need no hashing
}

var errPack = errors.New("a pack makes no sense")

// parsePack reads the head of a pack. Of one whose checksum is wrong every object has
// to be hashed; where it is one bit that makes it wrong, the others are as they were.
// It keeps b.
func parsePack(n uint32, b []byte) (*pack, error) { return parsePackIn(nil, n, b) }

func parsePackIn(a *arena, n uint32, b []byte) (*pack, error) {
	if len(b) < packIDs {
		return nil, fmt.Errorf("pack %d: %w: a head of %d bytes", n, errPack, len(b))
	}
	sound := hasValidSum(n, b)
	if !sound {
		b = checksum.Repair(packKey(n), b)
	}
	return parseHead(a, n, b, sound)
}

// isSummed tells whether the checksum of a head is right.
func hasValidSum(n uint32, b []byte) bool {
	return binary.BigEndian.Uint64(b) == checksum.Sum(packKey(n), b[8:])
}

// openHead reads what is in a head.
func parseHead(a *arena, n uint32, b []byte, sound bool) (*pack, error) {
	f := parsePackHeader(b)
	if f.end > len(b) {
		return nil, fmt.Errorf("pack %d: %w: %d objects in %d bytes", n, errPack, f.count, len(b))
	}
	ids := b[packIDs:f.end:f.end]
	table, purged, err := f.splitTable(b)
	if err == nil && f.zstd {
		table, err = inflate(a, nil, table)
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

// front is what a head begins with.
type packHeader struct {
	zstd   bool
	purged bool
	count  int // objects
	others int
	end    int // of the ids; beyond every head: no head begins so
}

// frontOf reads the front of a head, which has packIDs bytes at least.
func parsePackHeader(b []byte) (f packHeader) {
	count := binary.BigEndian.Uint16(b[8:])
	f.zstd, f.purged = count&packZstd != 0, count&packPurged != 0
	f.count, f.others = int(count&^(packZstd|packPurged)), int(binary.BigEndian.Uint32(b[10:]))
	if f.end = packIDs + (f.count+f.others)*idSize; f.count > packObjects {
		f.end = math.MaxInt
	}
	return f
}

// splitTable splits what follows the ids of a head into the table and the rows of erased
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

func (p *pack) id(i int) objects.ID { return *p.ID(i) }

// isPurged reports whether the object of a row was purged.
func (p *pack) isPurged(i int) bool {
	_, found := slices.BinarySearch(p.purged, uint16(i))
	return found
}

// has reports whether an object is at a row and was not erased.
func (p *pack) has(i int, id objects.ID) bool { return *p.ID(i) == id && !p.isPurged(i) }
