package commit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// withField puts a field with a value that any of a commit may have into a record.
func withField(record []byte, field int) []byte {
	one := binary.AppendUvarint(nil, uint64(field)<<3)
	switch field {
	case 6, 9, 10, 12, 16: // ids and words
		one = append(binary.AppendUvarint(nil, uint64(field)<<3|2), 32)
		one = append(one, bytes.Repeat([]byte("a"), 32)...)
	default:
		one = append(one, 1)
	}
	at := 0
	for at < len(record) {
		tag, n := binary.Uvarint(record[at:])
		if int(tag>>3) > field {
			break
		}
		v, m := binary.Uvarint(record[at+n:])
		if at += n + m; tag&7 == 2 {
			at += int(v)
		}
	}
	return slices.Concat(record[:at], one, record[at:])
}

// TestATagSaysWhatItMay puts into the tag of a form what format.md has in no tag, and into
// a rest what it has in no rest: no commit is read of it, neither as an object nor in a line.
func TestATagSaysWhatItMay(t *testing.T) {
	list := plainLine(t, 9)
	ids, laid, _ := objects.LaySheet(list, 0, nil)
	s, err := objects.OpenSheet(len(list), ids, laid, nil)
	if err != nil {
		t.Fatal(err)
	}
	last := len(list) - 1
	for i := range list {
		if list[i].Kind == objects.KindCommit {
			last = i
		}
	}
	tag := s.Tag(s.Form(last))
	read := func(what string, tell []byte) (both error) {
		lies := cutTable(laid)
		was, is := append([]byte{byte(len(tag))}, tag...), append([]byte{byte(len(tell))}, tell...)
		if len(tag) == 0 || len(tell) > 127 || !bytes.Contains(lies.front, was) {
			t.Fatalf("%s: the tag %x is not found", what, tag)
		}
		lies.front = bytes.ReplaceAll(lies.front, was, is)
		s, err := objects.OpenSheet(len(list), ids, lies.join(), nil)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var edges []objects.ID
		var r rows
		r.read(s)
		_, one := s.Object(last, &edges)
		_, two := r.at(last, &r.states[last])
		if errors.Is(one, objects.ErrCorrupt) != errors.Is(two, objects.ErrCorrupt) {
			t.Errorf("%s: the object: %v, and in a line: %v", what, one, two)
		}
		return errors.Join(one, two)
	}
	if err := read("as it is", tag); err != nil {
		t.Fatal(err)
	}
	for _, field := range []int{5, 6, 8, 10, 11, 12, 13, 14, 16, 19} {
		if err := read("more", withField(tag, field)); !errors.Is(err, objects.ErrCorrupt) {
			t.Errorf("field %d in a tag: %v", field, err)
		}
	}
}

// TestARestSaysWhatItMay does the same with what is left of a commit.
func TestARestSaysWhatItMay(t *testing.T) {
	for field := 1; field <= 19; field++ {
		var c Commit
		_, err := c.decode(withField(nil, field), restFields)
		if allowed := slices.Contains([]int{5, 6, 10, 16}, field); allowed != (err == nil) {
			t.Errorf("field %d in a rest: %v", field, err)
		}
	}
}
