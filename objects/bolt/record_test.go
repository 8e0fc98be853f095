package bolt

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tract-vcs/tract/objects"
)

func drawID(t *rapid.T, label string) objects.ID {
	return objects.Hash(rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, label))
}

func TestObjectRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) objects.ID { return drawID(t, "id") }), 0, 300)
		in := objects.New(objects.Kind(rapid.IntRange(1, 7).Draw(t, "kind")), ids.Draw(t, "parents"), ids.Draw(t, "links"),
			rapid.SliceOf(rapid.Byte()).Draw(t, "data"))
		out, err := decodeObject(in.ID, encodeObject(in))
		if err != nil || out.Check() != nil {
			t.Fatalf("%+v, %v", out, err)
		}
	})
}

func FuzzDecodeObject(f *testing.F) {
	f.Add(encodeObject(objects.New(objects.KindContent, nil, nil, []byte("hello"))))
	f.Add(encodeObject(objects.New(objects.KindCommit, []objects.ID{{1}}, []objects.ID{{2}, {3}}, nil)))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := decodeObject(objects.ID{1}, b)
		if err != nil && !errors.Is(err, objects.ErrCorrupt) {
			t.Errorf("%x: %v is no CorruptError", b, err)
		}
		if err == nil && !bytes.Equal(encodeObject(o), b) {
			t.Errorf("%x was accepted and is written %x", b, encodeObject(o))
		}
	})
}

func TestRefRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := refRecord{objects.Ref{
			Name: rapid.String().Draw(t, "name"), Target: drawID(t, "target"), Version: rapid.Uint64Min(1).Draw(t, "version"),
			Updated: time.UnixMilli(rapid.Int64().Draw(t, "ms")).UTC(),
		}, drawID(t, "entry")}
		value := encodeRef(in)
		out, err := decodeRef(in.Name, value)
		if err != nil || out != in {
			t.Fatalf("in  %+v\nout %+v, %v", in, out, err)
		}
		bit := rapid.IntRange(0, len(value)*8-1).Draw(t, "bit")
		value[bit/8] ^= 1 << (bit % 8)
		if out, err := decodeRef(in.Name, value); err == nil {
			t.Fatalf("with bit %d changed it reads %+v", bit, out)
		}
	})
}

func FuzzDecodeRef(f *testing.F) {
	const name = "refs/heads/x"
	f.Add(encodeRef(refRecord{objects.Ref{Name: name, Target: objects.ID{1}, Version: 7, Updated: time.UnixMilli(-5)}, objects.ID{2}})[checksumSize:])
	f.Fuzz(func(t *testing.T, record []byte) {
		value := withChecksum([]byte(name), record)
		if r, err := decodeRef(name, value); err == nil && !bytes.Equal(encodeRef(r), value) {
			t.Errorf("%x was accepted and is written %x", value, encodeRef(r))
		}
	})
}

func TestLogEntryIsSealed(t *testing.T) {
	e := objects.NewLogEntry(42, objects.Note{Author: "a"}, []objects.RefUpdate{{Name: "refs/heads/x", New: objects.ID{1}}})
	value := encodeEntry(e)
	if got, err := decodeEntries(logKey(42), value); err != nil || !reflect.DeepEqual(got, []objects.LogEntry{e}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := decodeEntries(logKey(43), value); err == nil {
		t.Errorf("in the place of entry 43: %+v", got)
	}
	for bit := range len(value) * 8 {
		bad := bytes.Clone(value)
		bad[bit/8] ^= 1 << (bit % 8)
		if got, err := decodeEntries(logKey(42), bad); err == nil {
			t.Errorf("with bit %d changed it reads %+v", bit, got)
		}
	}
}

func TestFormatRecord(t *testing.T) {
	for _, version := range []uint64{1, 2, math.MaxUint64} {
		if got, err := decodeFormat(encodeFormat(version)); err != nil || got != version {
			t.Errorf("version %d reads %d, %v", version, got, err)
		}
	}
	newer := withChecksum(formatKey, []byte{0x08, formatVersion + 1, 0x10, 1, 0x1a, 1, 'x'})
	if got, err := decodeFormat(newer); err != nil || got != formatVersion+1 {
		t.Errorf("a newer format with fields of its own reads %d, %v", got, err)
	}
	for _, bad := range [][]byte{nil, encodeFormat(1)[:checksumSize], withChecksum(formatKey, []byte{0x08, 0}), withChecksum(formatKey, []byte{0x08, 1, 0x10, 1})} {
		if got, err := decodeFormat(bad); err == nil && got != 0 {
			t.Errorf("%x reads %d", bad, got)
		}
	}
}

func TestRecentKeysPutTheNewestFirst(t *testing.T) {
	var keys [][]byte
	for _, ms := range []int64{math.MaxInt64, 1 << 40, 1, 0, -1, -1 << 40, math.MinInt64} {
		for _, name := range []string{"a", "a/b", "b"} {
			keys = append(keys, recentKey(objects.Ref{Name: name, Updated: time.UnixMilli(ms)}))
		}
	}
	if !slices.IsSortedFunc(keys, bytes.Compare) {
		t.Errorf("out of order: %x", keys)
	}
}
