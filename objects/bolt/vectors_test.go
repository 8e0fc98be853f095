package bolt

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/index"
)

// packedVectors are values as a store has them that is packed closely. Another program
// may make other frames of the same; it must read these.
type packedVectors struct {
	Pack packVector `json:"pack"`
	Log  struct {
		Key    string   `json:"key"`
		Value  string   `json:"value"`
		Hashes []string `json:"hashes"`
	} `json:"log"`
	Index struct {
		Key     string   `json:"key"`
		Value   string   `json:"value"`
		Entries []string `json:"entries"`
	} `json:"index"`
}

type packVector struct {
	Number  uint32   `json:"number"`
	Head    string   `json:"head"`
	Body    string   `json:"body"`
	Objects []string `json:"objects"` // id, kind and data of each
}

// read is the vector with the objects that are read of it.
func (v packVector) read(t *testing.T) packVector {
	t.Helper()
	p, err := parsePack(nil, v.Number, unhex(t, v.Head))
	if err != nil || !p.sound {
		t.Fatalf("head: %v", err)
	}
	data, sound, err := decodeBody(nil, p, unhex(t, v.Body))
	if err != nil || !sound {
		t.Fatalf("body: %v", err)
	}
	v.Objects = nil
	var room []objects.ID
	for i := range p.Len() {
		o, err := verified(p.objectWith(i, data, &room))
		if err != nil {
			t.Fatalf("object %d: %v", i, err)
		}
		v.Objects = append(v.Objects, fmt.Sprintf("%s %s %x", o.ID, o.Kind, o.Data))
	}
	return v
}

var update = flag.Bool("update", false, "write the vectors anew")

func TestPackedVectors(t *testing.T) {
	b := mustRead(t, filepath.Join("..", "..", "testdata", "vectors", "packed.json"))
	var want packedVectors
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if *update {
		want = writePacked(t)
	}
	got := want
	got.Pack = want.Pack.read(t)
	entries, err := decodeEntries(unhex(t, want.Log.Key), unhex(t, want.Log.Value))
	if err != nil {
		t.Fatal(err)
	}
	got.Log.Hashes = nil
	for _, e := range entries {
		got.Log.Hashes = append(got.Log.Hashes, e.Hash.String())
	}
	chunk, err := decodeChunk(nil, unhex(t, want.Index.Key), unhex(t, want.Index.Value))
	if err != nil {
		t.Fatal(err)
	}
	got.Index.Entries = nil
	for _, e := range chunk {
		got.Index.Entries = append(got.Index.Entries, fmt.Sprintf("%08x pack %d row %d", e.Prefix, e.Pack, e.Row))
	}
	have, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		err = os.WriteFile(filepath.Join("..", "..", "testdata", "vectors", "packed.json"), append(have, '\n'), 0o600)
	} else if string(have)+"\n" != string(b) {
		err = fmt.Errorf("they are read as\n%s", have)
	}
	if err != nil {
		t.Error(err)
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// writePacked makes the vectors anew, which is a new format.
func writePacked(t testing.TB) (v packedVectors) {
	t.Helper()
	var list []objects.Object
	var entries []index.Entry
	var tip objects.ID
	for i := range 4 {
		c := object(fmt.Sprintf("Say it again, and again, and again: the sky is blue, and for the %d. time.", i))
		k := objects.New(objects.KindCommit, parentsOf(tip), []objects.ID{c.ID}, fmt.Append(nil, "the commit of the answer that has the number ", i))
		list, tip = append(list, c, k), k.ID
	}
	for i, o := range list {
		entries = append(entries, newIndexEntry(o.ID, place{5, i}))
	}
	head, body := encodePack(5, list, codecZstd)
	v.Pack.Number, v.Pack.Head, v.Pack.Body = 5, hex.EncodeToString(head), hex.EncodeToString(body)
	moves := someEntries(1, 4)
	from := objects.ID{}
	for i, o := range list {
		if o.Kind == objects.KindCommit {
			moves[i/2].Refs = append(moves[i/2].Refs, objects.RefUpdate{Name: "refs/heads/line", Old: from, New: o.ID})
			from = o.ID
		}
	}
	newest := map[string]objects.ID{}
	for i, e := range moves {
		moves[i] = linked(newest, e.Seq, e.Note, e.Refs)
	}
	key, value := encodeEntries(moves)
	v.Log.Key, v.Log.Value = hex.EncodeToString(key), hex.EncodeToString(value)
	index.Run{Level: 1, Number: 1}.Encode(entries, func(key, value []byte) {
		v.Index.Key, v.Index.Value = hex.EncodeToString(key), hex.EncodeToString(value)
	})
	return v
}
