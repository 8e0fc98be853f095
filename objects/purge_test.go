package objects_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// tombstoneVector is one tombstone of the file of vectors.
type tombstoneVector struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Size   int64  `json:"size"`
	Time   int64  `json:"time"` // milliseconds since 1970
	Why    string `json:"why"`
	Rest   string `json:"rest"`   // hexadecimal
	Record string `json:"record"` // hexadecimal
}

const tombstoneFile = "../testdata/vectors/tombstones.json"

var tombstones = []struct {
	name string
	t    objects.Tombstone
}{
	{"bare", objects.Tombstone{Kind: objects.KindChunk, Time: time.UnixMilli(0)}},
	{"thought", objects.Tombstone{Kind: objects.KindContent, Size: 54321, Time: time.UnixMilli(1795262400987), Why: "older than 7d", Remains: []byte("\x08\x04\x82\x01\x06parsed")}},
	{"before 1970", objects.Tombstone{Kind: objects.KindLabel, Size: 1, Time: time.UnixMilli(-1), Why: "purged"}},
}

// TestTombstoneVectors holds records to their bytes.
func TestTombstoneVectors(t *testing.T) {
	var have []tombstoneVector
	for _, c := range tombstones {
		record := c.t.Record()
		have = append(have, tombstoneVector{c.name, c.t.Kind.String(), c.t.Size, c.t.Time.UnixMilli(), c.t.Why, hex.EncodeToString(c.t.Remains), hex.EncodeToString(record)})
		back, err := objects.ParseTombstone(c.t.ID, record)
		if err != nil || !bytes.Equal(back.Record(), record) || back.Size != c.t.Size || !back.Time.Equal(c.t.Time) {
			t.Errorf("%s comes back as %+v, %v", c.name, back, err)
		}
	}
	if *update {
		b, err := json.MarshalIndent(have, "", "  ")
		if err == nil {
			err = os.WriteFile(tombstoneFile, append(b, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(tombstoneFile)
	if err != nil {
		t.Fatal(err)
	}
	var want []tombstoneVector
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(have, want) {
		t.Errorf("the records of tombstones are other bytes than those of %s", tombstoneFile)
	}
}

func TestInvalidTombstonesAreRefused(t *testing.T) {
	for what, one := range map[string]objects.Tombstone{
		"of a commit":   {Kind: objects.KindCommit},
		"of a manifest": {Kind: objects.KindManifest},
		"of no kind":    {},
		"a long reason": {Kind: objects.KindContent, Why: strings.Repeat("w", 1<<10+1)},
		"a long rest":   {Kind: objects.KindContent, Remains: make([]byte, 2<<10+1)},
	} {
		if _, err := objects.ParseTombstone(objects.ID{1}, one.Record()); !errors.Is(err, objects.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	whole := tombstones[1].t.Record()
	for n := range whole {
		if back, err := objects.ParseTombstone(objects.ID{1}, whole[:n]); err == nil && bytes.Equal(back.Record(), whole) {
			t.Errorf("%d of %d bytes are the whole record", n, len(whole))
		}
	}
	if _, err := objects.ParseTombstone(objects.ID{1}, append(whole, 0x30, 1)); !errors.Is(err, objects.ErrCorrupt) {
		t.Error("a field that nobody knows is not refused")
	}
}
