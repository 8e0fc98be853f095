package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

const buckets = 9

var bound = Binding{Salt: [SaltSize]byte{1, 2, 3}, Generation: 3, Sequence: 7}

func newLog(t testing.TB) *Log {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, NewFile(bound.Salt), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	l, err := Open(f, bound)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func frameOf(i int) *Frame {
	f := NewFrame(0)
	f.Put(1, fmt.Appendf(nil, "key %d", i), []byte("value"))
	f.Delete(2, []byte{byte(i)})
	return f
}

// read returns how many frames a journal has.
func read(b []byte, at Position, acknowledged int64) (frames int, end Position, err error) {
	r := bytes.NewReader(b)
	end, err = Replay(r, int64(len(b)), at, buckets, func([]Change) { frames++ })
	if err == nil {
		err = end.CheckTail(r, int64(len(b)), acknowledged)
	}
	return frames, end, err
}

// appended returns a journal of n frames, and where each ends.
func appended(t testing.TB, n int) (b []byte, ends []int64) {
	t.Helper()
	l := newLog(t)
	for i := range n {
		if _, err := l.Append(frameOf(i)); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, l.End)
	}
	b, err := os.ReadFile(l.File.Name())
	if err != nil {
		t.Fatal(err)
	}
	return b, ends
}

// TestTornTailIsNotDamage ends a journal anywhere in its last frame: without an anchor for
// the frame it is one that a crash has torn, with one it was lost.
func TestTornTailIsNotDamage(t *testing.T) {
	b, ends := appended(t, 4)
	last := ends[2] + FrameHeader + int64(frameOf(3).Size()) // without padding
	for at := ends[2]; at < last; at++ {
		torn := append(bytes.Clone(b[:at]), make([]byte, int64(len(b))-at)...)
		if bytes.Equal(torn, b) {
			continue
		}
		if n, end, err := read(torn, StartOf(bound), ends[2]); err != nil || n != 3 || end.End != ends[2] {
			t.Errorf("torn at %d: %d frames, %v", at, n, err)
		}
		if _, _, err := read(torn, StartOf(bound), ends[3]); err == nil {
			t.Errorf("torn at %d: the frame was acknowledged, and nothing is said", at)
		}
	}
}

// TestFlippedBitIsFound flips every bit of the frames: each but those of the last frame is
// damage, with an anchor and without.
func TestFlippedBitIsFound(t *testing.T) {
	b, ends := appended(t, 3)
	for bit := int64(Start * 8); bit < ends[1]*8; bit++ {
		b[bit/8] ^= 1 << (bit % 8)
		for _, acknowledged := range []int64{0, ends[2]} {
			n, _, err := read(b, StartOf(bound), acknowledged)
			if err == nil && n < 3 {
				t.Errorf("bit %d, acknowledged %d: %d frames and no error", bit, acknowledged, n)
			}
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
}

// TestFrameIsBoundToItsOffset moves a frame, and reads it as one of another store and of another
// generation: it does not count.
func TestFrameIsBoundToItsOffset(t *testing.T) {
	b, ends := appended(t, 1)
	other, older := bound, bound
	other.Salt[0]++
	older.Generation++
	for name, at := range map[string]Position{"another store": StartOf(other), "another generation": StartOf(older)} {
		if n, _, err := read(b, at, 0); n != 0 || err != nil {
			t.Errorf("%s: %d frames, %v", name, n, err)
		}
	}
	moved := bytes.Clone(b)
	copy(moved[ends[0]:], b[Start:ends[0]])
	clear(moved[Start:ends[0]])
	if _, _, ok := parseFrame(bound, ends[0], moved[ends[0]:]); ok {
		t.Error("a frame counts in another place")
	}
}

// TestTruncateKeepsMemoryOfReaders removes changes of a frame while their memory may still be read.
func TestTruncateKeepsMemoryOfReaders(t *testing.T) {
	f := frameOf(1)
	n, size := len(f.Changes), f.Size()
	f.Put(3, []byte("key"), []byte("first"))
	read := f.Changes[n].Value
	f.Truncate(n, size)
	f.Put(3, []byte("key"), []byte("other"))
	if string(read) != "first" || string(f.Changes[n].Value) != "other" || len(f.Changes) != n+1 {
		t.Errorf("%q, then %q", read, f.Changes[n].Value)
	}
	list, err := ParseChanges(f.b[FrameHeader:], buckets)
	if err != nil || len(list) != n+1 || string(list[n].Value) != "other" {
		t.Errorf("%d changes, %v", len(list), err)
	}
}

// TestJournalTruncatedWhileRead has the file end before it did when its size was asked for,
// as a reader without a lock can see it.
func TestJournalTruncatedWhileRead(t *testing.T) {
	l := newLog(t)
	f := NewFrame(0)
	f.Put(0, []byte("key"), []byte("value"))
	if _, err := l.Append(f); err != nil {
		t.Fatal(err)
	}
	begin := StartOf(l.Binding)
	for _, end := range []int64{Start + FrameHeader + 1, Start + 1, int64(HeaderSize)} {
		if err := l.File.Truncate(end); err != nil {
			t.Fatal(err)
		}
		now, err := Replay(l.File, l.size, begin, buckets, func([]Change) { t.Errorf("of %d bytes a frame counts", end) })
		if err != nil || now != begin {
			t.Errorf("%d bytes are read up to %+v, %v", end, now, err)
		}
	}
}

func FuzzAnchor(f *testing.F) {
	f.Add(Position{Binding: Binding{Salt: [SaltSize]byte{1}, Generation: 2}, End: 4096, Sequence: 9}.EncodeAnchor())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < anchorSize {
			return
		}
		p := Position{Binding: Binding{Salt: [SaltSize]byte(b), Generation: binary.BigEndian.Uint64(b[SaltSize:])}, Sequence: binary.BigEndian.Uint64(b[SaltSize+16:])}
		end, intact, err := p.Acknowledged(bytes.NewReader(b))
		if p.End = end; err != nil || intact && end > 0 && !bytes.Equal(p.EncodeAnchor(), b[:anchorSize]) {
			t.Errorf("%x is written %x, %v", b, p.EncodeAnchor(), err)
		}
	})
}

func FuzzChanges(f *testing.F) {
	f.Add(frameOf(1).b[FrameHeader:])
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := ParseChanges(b, buckets)
		if err != nil {
			return
		}
		again := NewFrame(0)
		for _, c := range list {
			if c.Value == nil {
				again.Delete(c.Bucket, c.Key)
			} else {
				again.Put(c.Bucket, c.Key, c.Value)
			}
		}
		if payload, _, ok := parseFrame(bound, Start, again.encode(bound, Start, 1)); !ok || !bytes.Equal(payload, b) {
			t.Errorf("%x was accepted and is written %x", b, payload)
		}
	})
}

// FuzzJournal reads whatever a journal may hold.
func FuzzJournal(f *testing.F) {
	b, ends := appended(f, 2)
	f.Add(b[:ends[1]], int64(0))
	f.Add(b[:ends[1]], ends[1])
	f.Fuzz(func(t *testing.T, b []byte, acknowledged int64) {
		_, end, err := read(b, StartOf(bound), acknowledged)
		if err == nil && (end.End < acknowledged || end.End > max(int64(len(b))+Alignment, Start)) {
			t.Errorf("a journal of %d bytes ends at %d, and %d were acknowledged", len(b), end.End, acknowledged)
		}
	})
}

// TestFrameOfAnotherPlaceInTheSequenceEndsTheJournal writes a valid frame whose sequence number skips
// one: what it depends on is lost, so neither it nor what follows counts.
func TestFrameOfAnotherPlaceInTheSequenceEndsTheJournal(t *testing.T) {
	for name, sequence := range map[string]uint64{"a gap": bound.Sequence + 2, "a repetition": bound.Sequence} {
		l := newLog(t)
		if _, err := l.Append(frameOf(0)); err != nil {
			t.Fatal(err)
		}
		end := l.End
		l.Sequence = sequence
		if _, err := l.Append(frameOf(1)); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(l.File.Name())
		if err != nil {
			t.Fatal(err)
		}
		at := StartOf(bound)
		if frames, to, _ := read(b, at, 0); frames != 1 || to.End != end {
			t.Errorf("%s: %d frames up to %d, want 1 up to %d", name, frames, to.End, end)
		}
	}
}
