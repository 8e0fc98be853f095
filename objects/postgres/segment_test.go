package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// line makes successive commits, some without content and some with that of an earlier one.
func line(n int) []entry {
	var list []entry
	parent := objects.Hash([]byte("outside"))
	for i := range n {
		content := objects.New(objects.KindContent, nil, nil, fmt.Append(nil, "message ", i%7, " of many"))
		e := entry{commit: objects.New(objects.KindCommit, []objects.ID{parent}, []objects.ID{content.ID, objects.Hash([]byte("origin"))}, fmt.Append(nil, "header ", i))}
		if i%5 != 3 {
			e.content = content
		}
		parent = e.commit.ID
		list = append(list, e)
	}
	return list
}

func TestSegmentRoundTrip(t *testing.T) {
	for _, n := range []int{1, 2, 255, segmentSize} {
		list := line(n)
		row, hints := encodeSegment(7, 100, list, 5)
		seg, err := decodeSegment(row)
		if err != nil {
			t.Fatal(err)
		}
		got, err := seg.entries()
		if err != nil || len(got) != n || len(hints) != seg.table.Len() {
			t.Fatalf("%d commits of %d, %d hints, %v", len(got), n, len(hints), err)
		}
		for i := range list {
			want := list[i]
			if want.content.Kind == 0 { // another commit of the segment may have the same
				want.content = got[i].content
			}
			if !reflect.DeepEqual(got[i], want) {
				t.Fatalf("commit %d of %d is\n%+v\nwant\n%+v", i, n, got[i], want)
			}
		}
		row.bodies = nil
		heads, err := decodeSegment(row)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if f, ok := heads.lookup(list[i].commit.ID, true); !ok || !reflect.DeepEqual(f.object, list[i].commit) || f.at.gen != 100+int64(i) {
				t.Fatalf("without bodies commit %d is %+v", i, f)
			}
		}
	}
}

// TestChangedSegment changes each byte of a segment: what is read is what was written, or it
// is an error.
func TestChangedSegment(t *testing.T) {
	list := line(40)
	row, _ := encodeSegment(7, 100, list, 5)
	wrong := 0
	tip := row.tip[:]
	for _, part := range []*[]byte{&row.heads, &row.bodies, &tip} {
		whole := *part
		for i := range whole {
			lie := bytes.Clone(whole)
			lie[i] ^= 1 << (i % 8)
			*part = lie
			row.tip = objects.ID(tip)
			seg, err := decodeSegment(row)
			if err != nil {
				if !errors.Is(err, objects.ErrCorrupt) {
					t.Fatalf("byte %d: %v", i, err)
				}
				wrong++
				continue
			}
			got, err := seg.entries()
			if err != nil {
				wrong++
				continue
			}
			for i := range got {
				if !reflect.DeepEqual(got[i].commit, list[i].commit) || got[i].content.Kind != 0 && got[i].content.Check() != nil {
					t.Fatalf("byte %d: commit %d is %+v", i, i, got[i])
				}
			}
		}
		*part = whole
	}
	if wrong == 0 {
		t.Error("no change was noticed")
	}
}

func FuzzDecodeSegment(f *testing.F) {
	row, _ := encodeSegment(7, 100, line(20), 5)
	f.Add(row.heads, row.bodies, row.tip[:], 20)
	f.Fuzz(func(t *testing.T, heads, bodies, tip []byte, n int) {
		row := segmentRow{line: 7, gen0: 100, n: n, heads: heads, bodies: bodies}
		copy(row.tip[:], tip)
		seg, err := decodeSegment(row)
		if err != nil {
			return
		}
		for _, c := range seg.commits {
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = seg.entries()
	})
}

func TestIndexHints(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var data []byte
	var ids []objects.ID
	for range 1000 {
		id := objects.Hash(binary.BigEndian.AppendUint64(nil, r.Uint64()))
		ids = append(ids, id)
		data = append(data, hintOf(id)...)
	}
	for n, id := range ids {
		for _, digits := range []int{0, 1, 5, 12, 64} {
			found := false
			for h := range indexHints(append(data, 1, 2, 3), id.String()[:digits]) {
				found = found || [hintSize]byte(id[:]) == h
			}
			if !found {
				t.Fatalf("id %d is not found by %d digits", n, digits)
			}
		}
	}
}

func TestURLs(t *testing.T) {
	for address, want := range map[string][2]string{
		"postgres://ada:s3cret@db.example:5433/agents?repo=support": {"support", "postgres://ada@db.example:5433/agents?repo=support"},
		"postgresql://db/agents":                                    {"tract", "postgresql://db/agents?repo=tract"},
		"postgres:///agents?host=/run/pg&password=s3cret&repo=a":    {"a", "postgres:///agents?host=/run/pg&repo=a"},
	} {
		_, repo, name, err := parseAddress(address)
		if err != nil || repo != want[0] || name != want[1] {
			t.Errorf("%s is repo %q of %q, %v", address, repo, name, err)
		}
	}
	config, _, _, err := parseAddress("postgres://db/x?options=-c%20geqo%3Doff&password=a+b")
	if err != nil || config.ConnConfig.RuntimeParams["options"] != "-c geqo=off" || config.ConnConfig.Password != "a+b" {
		t.Errorf("a space and a plus sign: %q, %q, %v", config.ConnConfig.RuntimeParams["options"], config.ConnConfig.Password, err)
	}
	for _, address := range []string{"postgres://ada:s3cret@db:port/x", "postgres://ada:s3cret@db/x?sslmode=odd", "postgres://ada:s3c%ret@db/x", "postgres://ada:s3cret@db/x?pool_max_conns=s3cret"} {
		_, _, _, err := parseAddress(address)
		if err == nil || bytes.Contains([]byte(err.Error()), []byte("s3c")) {
			t.Errorf("%s gives %v", address, err)
		}
	}
}
