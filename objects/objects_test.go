package objects_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

var update = flag.Bool("update", false, "write the vectors anew")

// vector is one object of the file of vectors, which another implementation
// can check itself against.
type vector struct {
	Name     string       `json:"name"`
	Kind     string       `json:"kind"`
	Parents  []objects.ID `json:"parents"`
	Links    []objects.ID `json:"links"`
	Data     string       `json:"data"`     // hexadecimal
	Preimage string       `json:"preimage"` // hexadecimal: what is hashed
	ID       objects.ID   `json:"id"`
}

const vectorFile = "../testdata/vectors/objects.json"

// samples are the objects of the vectors.
func samples() map[string]objects.Object {
	hello := objects.New(objects.KindContent, nil, nil, []byte("hello"))
	root := objects.New(objects.KindCommit, nil, []objects.ID{hello.ID}, []byte("root"))
	child := objects.New(objects.KindCommit, []objects.ID{root.ID}, []objects.ID{hello.ID}, []byte("child"))
	m := map[string]objects.Object{
		"empty content":            objects.New(objects.KindContent, nil, nil, nil),
		"content":                  hello,
		"bytes that are no UTF-8":  objects.New(objects.KindContent, nil, nil, []byte("\xff\x00\xed\xa0\x80\r\n")),
		"root commit":              root,
		"commit":                   child,
		"merge commit":             objects.New(objects.KindCommit, []objects.ID{child.ID, root.ID}, nil, []byte("merge")),
		"origin":                   objects.New(objects.KindOrigin, nil, []objects.ID{hello.ID}, []byte("o")),
		"manifest":                 objects.New(objects.KindManifest, nil, []objects.ID{child.ID, root.ID}, nil),
		"list":                     objects.New(objects.KindList, nil, []objects.ID{hello.ID, hello.ID}, nil),
		"chunk of 128 bytes":       objects.New(objects.KindChunk, nil, nil, bytes.Repeat([]byte{7}, 128)),
		"tools":                    objects.New(objects.KindTools, nil, nil, []byte("[]")),
		"130 links, two-byte size": objects.New(objects.KindList, nil, slices.Repeat([]objects.ID{hello.ID}, 130), bytes.Repeat([]byte{0}, 300)),
	}
	return m
}

// preimage writes down what is hashed, as the comment of Sum says it.
func preimage(o objects.Object) []byte {
	varint := func(b []byte, v int) []byte {
		for ; v >= 0x80; v >>= 7 {
			b = append(b, byte(v)|0x80)
		}
		return append(b, byte(v))
	}
	b := append([]byte("tract 1\x00"), byte(o.Kind))
	for _, edges := range [][]objects.ID{o.Parents, o.Links} {
		b = varint(b, len(edges))
		for _, id := range edges {
			b = append(b, id[:]...)
		}
	}
	return append(varint(b, len(o.Data)), o.Data...)
}

func TestVectors(t *testing.T) {
	if *update {
		writeVectors(t)
	}
	raw, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	want := samples()
	if len(vectors) != len(want) {
		t.Errorf("%d vectors, want %d", len(vectors), len(want))
	}
	for _, v := range vectors {
		kind, err := objects.ParseKind(v.Kind)
		if err != nil {
			t.Fatal(err)
		}
		data, err := hex.DecodeString(v.Data)
		if err != nil {
			t.Fatal(err)
		}
		o := objects.New(kind, v.Parents, v.Links, data)
		if o.ID != v.ID || o.ID != want[v.Name].ID {
			t.Errorf("%s: id %s, the vector says %s", v.Name, o.ID, v.ID)
		}
		if got := hex.EncodeToString(preimage(o)); got != v.Preimage || objects.Hash(preimage(o)) != v.ID {
			t.Errorf("%s: preimage %s, the vector says %s", v.Name, got, v.Preimage)
		}
	}
}

func writeVectors(t *testing.T) {
	var vectors []vector
	for name, o := range samples() {
		vectors = append(vectors, vector{
			Name: name, Kind: o.Kind.String(), Parents: append([]objects.ID{}, o.Parents...), Links: append([]objects.ID{}, o.Links...),
			Data: hex.EncodeToString(o.Data), Preimage: hex.EncodeToString(preimage(o)), ID: o.ID,
		})
	}
	slices.SortFunc(vectors, func(a, b vector) int { return strings.Compare(a.Name, b.Name) })
	raw, err := json.MarshalIndent(vectors, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(vectorFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(vectorFile, append(raw, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestEveryPartOfAnObjectIsHashed(t *testing.T) {
	a, b := objects.Hash([]byte("a")), objects.Hash([]byte("b"))
	seen := map[objects.ID]objects.Object{}
	for _, o := range []objects.Object{
		objects.New(objects.KindCommit, []objects.ID{a}, []objects.ID{b}, []byte("x")),
		objects.New(objects.KindContent, []objects.ID{a}, []objects.ID{b}, []byte("x")),
		objects.New(objects.KindCommit, []objects.ID{b}, []objects.ID{a}, []byte("x")),
		objects.New(objects.KindCommit, []objects.ID{a, b}, nil, []byte("x")),
		objects.New(objects.KindCommit, nil, []objects.ID{a, b}, []byte("x")),
		objects.New(objects.KindCommit, nil, []objects.ID{b, a}, []byte("x")),
		objects.New(objects.KindCommit, []objects.ID{a}, []objects.ID{b}, []byte("x\x00")),
		objects.New(objects.KindCommit, []objects.ID{a}, []objects.ID{b}, []byte("y")),
		objects.New(objects.KindCommit, []objects.ID{a}, []objects.ID{b}, nil),
		objects.New(objects.KindCommit, []objects.ID{a}, nil, append(b[:], 'x')),
	} {
		if other, ok := seen[o.ID]; ok {
			t.Errorf("%+v and %+v have one id", o, other)
		}
		seen[o.ID] = o
	}
}

func TestParseID(t *testing.T) {
	id := objects.Hash([]byte("id"))
	for _, s := range []string{id.String(), strings.ToUpper(id.String())} {
		if got, err := objects.ParseID(s); err != nil || got != id {
			t.Errorf("parse %q: %s, %v", s, got, err)
		}
	}
	for _, s := range []string{"", id.Short(), id.String()[1:], id.String() + "0", "0x" + id.String()[2:], strings.Repeat("g", 64), strings.Repeat("é", 32)} {
		if got, err := objects.ParseID(s); err == nil || !got.IsZero() || !strings.Contains(err.Error(), "hexadecimal") {
			t.Errorf("parse %q: %s, %v", s, got, err)
		}
	}
	if !strings.HasPrefix(id.String(), id.Short()) || len(id.Short()) != 7 {
		t.Errorf("short form %q of %s", id.Short(), id)
	}
}

func TestIDAsText(t *testing.T) {
	type pair struct{ A, B objects.ID }
	in := pair{A: objects.Hash([]byte("a"))}
	text, err := json.Marshal(in)
	if err != nil || string(text) != `{"A":"`+in.A.String()+`","B":""}` {
		t.Errorf("written as %s, %v", text, err)
	}
	out := pair{B: objects.Hash([]byte("to be overwritten"))}
	if err := json.Unmarshal(text, &out); err != nil || out != in {
		t.Errorf("read back as %+v, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"A":"abc"}`), &out); err == nil {
		t.Error("an abbreviated id was read")
	}
}

func TestKinds(t *testing.T) {
	for k := range objects.Kind(255) {
		back, err := objects.ParseKind(k.String())
		if k.Valid() != (err == nil) || k.Valid() && back != k {
			t.Errorf("kind %d is %q and read back as %d, %v", k, k, back, err)
		}
	}
	if _, err := objects.ParseKind(""); err == nil {
		t.Error("a kind without name was read")
	}
}

func TestCheckRefName(t *testing.T) {
	for _, name := range []string{
		"refs/heads/main", "refs/heads/feature/x", "refs/heads/ümlaut", "refs/heads/日本", "refs/heads/a@b", "refs/heads/a.b", "refs/heads/a-b",
		"refs/x/y", "refs/heads/{a}", "refs/heads/#1", "refs/heads/a(b)", "refs/heads/" + strings.Repeat("x", 255-len("refs/heads/")),
	} {
		if err := objects.CheckRefName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{
		"", "main", "refs", "refs/", "refs/main", "refs//main", "refs/heads/", "/refs/heads/x", "heads/x/y", "Refs/heads/x", "refs/heads//x",
		"refs/heads/.x", "refs/heads/x.", "refs/heads/x..y", "refs/heads/../x", "refs/heads/-x", "refs/heads/x.lock", "refs/x.lock/y", "refs/heads/@",
		"refs/heads/x@{1}", "refs/heads/a b", "refs/heads/a~1", "refs/heads/a^", "refs/heads/a:b", "refs/heads/a?", "refs/heads/a*", "refs/heads/[a",
		`refs/heads/a\b`, `refs/heads/"a"`, "refs/heads/'a'", "refs/heads/`a`", "refs/heads/<a>", "refs/heads/a|b", "refs/heads/a\x00b", "refs/heads/a\nb",
		"refs/heads/a\x7f", "refs/heads/\xff", "refs/heads/a\u202eb", "refs/heads/a\u200bb", "refs/heads/a\u00a0b", "refs/heads/u\u0308",
		"refs/heads/\U000E0041", "refs/heads/" + strings.Repeat("x", 256-len("refs/heads/")),
	} {
		if err := objects.CheckRefName(name); err == nil {
			t.Errorf("%q passed", name)
		} else if !strings.Contains(err.Error(), "ref name") {
			t.Errorf("%q: %v does not say that it is about a ref name", name, err)
		}
	}
}

func TestErrorsNameOperationAndObject(t *testing.T) {
	a, b := objects.Hash([]byte("a")), objects.Hash([]byte("b"))
	for want, err := range map[string]error{
		"ref refs/heads/x moved: expected " + a.Short() + ", is at " + b.Short(): &objects.ConflictError{Ref: "refs/heads/x", Want: a, Have: b},
		"ref refs/heads/x moved: expected nothing, is at " + b.Short():           &objects.ConflictError{Ref: "refs/heads/x", Have: b},
		"ref refs/heads/x moved: expected " + a.Short() + ", is at nothing":      &objects.ConflictError{Ref: "refs/heads/x", Want: a},
		"object " + a.Short() + ": not found":                                    &objects.NotFoundError{ID: a},
		"object " + a.Short() + " is damaged: bad":                               &objects.CorruptError{ID: a, Cause: errors.New("bad")},
		"store is damaged: bad":                                                  &objects.CorruptError{Cause: errors.New("bad")},
		"histories part at " + a.Short():                                         &objects.DivergedError{Base: a},
		"histories part at nothing":                                              &objects.DivergedError{},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
	cause := errors.New("cause")
	if err := error(&objects.CorruptError{Cause: cause}); !errors.Is(err, objects.ErrCorrupt) || !errors.Is(err, cause) {
		t.Error("a CorruptError hides what it is or its cause")
	}
	if err := objects.Unknown(cause); !objects.IsUnknown(err) || !errors.Is(err, cause) || objects.IsUnknown(cause) {
		t.Error("Unknown does not mark an error, or hides it")
	}
}

func TestAsLooksThroughWrappers(t *testing.T) {
	inner := objects.Memory()
	wrapped := outer{outer{inner}}
	w, ok := objects.As[objects.Watcher](wrapped)
	if !ok {
		t.Fatal("the memory behind two wrappers is no Watcher")
	}
	for ref, err := range w.Watch(t.Context(), "refs/heads/x") {
		if err != nil || ref.Name != "refs/heads/x" {
			t.Errorf("%+v, %v", ref, err)
		}
		break
	}
	if _, ok := objects.As[interface{ NoStoreHasThis() }](wrapped); ok {
		t.Error("an interface is found that no store has")
	}
	if o, ok := objects.As[outer](wrapped); !ok || !reflect.DeepEqual(o, wrapped) {
		t.Error("a store is not found in itself")
	}
}

type outer struct{ objects.Store }

func (o outer) Unwrap() objects.Store { return o.Store }

func TestOpen(t *testing.T) {
	s, err := objects.Open(t.Context(), "mem:", objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, url := range []string{"nosuch:x", "nosuch://host/x"} {
		if _, err := objects.Open(t.Context(), url, objects.Options{}); err == nil || !strings.Contains(err.Error(), `"nosuch:"`) {
			t.Errorf("open %s: %v", url, err)
		}
	}
}

// TestUnknownEngineShowsNoPassword opens a URL of an engine that the program does not have.
func TestUnknownEngineShowsNoPassword(t *testing.T) {
	_, err := objects.Open(t.Context(), "unknown://ada:s3cret@host/x", objects.Options{})
	if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), `"unknown:"`) {
		t.Errorf("%v", err)
	}
}
