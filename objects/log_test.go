package objects_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
	"pgregory.net/rapid"
)

func someEntry(t *rapid.T) objects.LogEntry {
	id := rapid.Custom(func(t *rapid.T) (id objects.ID) {
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "id"))
		return id
	})
	seq := rapid.Uint64Max(1<<62).Draw(t, "seq")
	text := rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })
	note := objects.Note{
		Time:   time.UnixMilli(rapid.Int64().Draw(t, "ms")).Add(time.Duration(rapid.IntRange(0, 999_999).Draw(t, "ns"))),
		Author: text.Draw(t, "author"), Command: text.Draw(t, "command"),
		Group: objects.Group{rapid.Byte().Draw(t, "group")}, Continues: rapid.Bool().Draw(t, "continues"), Reverts: objects.Group{rapid.Byte().Draw(t, "reverts")},
	}
	moves := rapid.SliceOf(rapid.Custom(func(t *rapid.T) objects.RefUpdate {
		return objects.RefUpdate{Name: text.Draw(t, "name"), Old: id.Draw(t, "old"), New: id.Draw(t, "new"), Prev: id.Draw(t, "prev")}
	})).Draw(t, "refs")
	if len(moves) == 0 {
		moves = nil
	}
	return objects.NewLogEntry(seq, note, moves)
}

func TestLogEntryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := someEntry(t)
		back, err := objects.ParseLogEntry(e.Record())
		if err != nil {
			t.Fatalf("parse what was written: %v", err)
		}
		if !reflect.DeepEqual(back, e) {
			t.Fatalf("in  %+v\nout %+v", e, back)
		}
	})
}

func TestLogEntryHashCoversEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := someEntry(t)
		record := bytes.Clone(e.Record())
		at := rapid.IntRange(0, len(record)*8-1).Draw(t, "bit")
		record[at/8] ^= 1 << (at % 8)
		if back, err := objects.ParseLogEntry(record); err == nil && back.Hash == e.Hash {
			t.Fatalf("bit %d of a record changed and its hash did not", at)
		}
	})
}

func TestParseLogEntryRefuses(t *testing.T) {
	id := objects.Hash([]byte("x"))
	good := objects.NewLogEntry(1, objects.Note{}, []objects.RefUpdate{{Name: "refs/heads/x", New: id}}).Record()
	for name, record := range map[string][]byte{
		"a cut record":       good[:len(good)-1],
		"a byte too many":    append(bytes.Clone(good), 0),
		"a huge number":      {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		"an unknown field":   append(bytes.Clone(good), 0x50, 1),
		"a short id":         {0x2a, 3, 0x12, 1, 7},
		"a long id":          append([]byte{0x2a, 35, 0x12, 33}, bytes.Repeat([]byte{7}, 33)...),
		"the zero id":        append([]byte{0x2a, 34, 0x22, 32}, make([]byte, 32)...),
		"a short group":      append(bytes.Clone(good), 0x32, 1, 7),
		"a long group":       append(append(bytes.Clone(good), 0x32, 17), bytes.Repeat([]byte{7}, 17)...),
		"the zero group":     append(append(bytes.Clone(good), 0x42, 16), make([]byte, 16)...),
		"a ref in a bad way": {0x2a, 2, 0x12, 0},
	} {
		if e, err := objects.ParseLogEntry(record); !errors.Is(err, objects.ErrCorrupt) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

func FuzzParseLogEntry(f *testing.F) {
	id := objects.Hash([]byte("x"))
	first := objects.NewLogEntry(1, objects.Note{Time: time.UnixMilli(1), Author: "a", Command: "c", Group: objects.Group{1}, Continues: true, Reverts: objects.Group{2}},
		[]objects.RefUpdate{{Name: "refs/heads/x", New: id}})
	f.Add(first.Record())
	f.Add(objects.NewLogEntry(5, objects.Note{}, []objects.RefUpdate{{Name: "refs/heads/x", Old: id, Prev: first.Hash}, {Name: "", Old: id, New: id}}).Record())
	f.Fuzz(func(t *testing.T, record []byte) {
		if e, err := objects.ParseLogEntry(record); err == nil && !bytes.Equal(e.Record(), record) {
			t.Errorf("%x was accepted and is written %x", record, e.Record())
		}
	})
}
