package commit

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

var update = flag.Bool("update", false, "write the vectors anew")

var noon = time.Date(2026, 11, 21, 12, 0, 0, 987654321, time.UTC)

// conversation returns a history with every operation and every field of a header.
func conversation() []Draft {
	reply := &Origin{
		Source: SourceModel, Session: "main", Provider: "anthropic", Dialect: "messages", Endpoint: "api.anthropic.com",
		Model: "claude-sonnet-4-5", ResponseID: "msg_1", Finish: "end_turn", Incomplete: true, UncommittedReasoning: 2,
		Usage:    content.Usage{Input: 10, Output: 20, Reasoning: 5, Cached: 3, CacheWrite: 1, Raw: []byte(`{"input_tokens":6}`)},
		Settings: map[string]string{"reasoning.effort": "high", "model": "claude-sonnet-4-5"},
		Started:  noon, FirstToken: 120 * time.Millisecond, Duration: 3 * time.Second,
	}
	user := &Origin{Source: SourceUser, Session: "main"}
	return []Draft{
		{Block: content.System("Be kind."), Origin: user, Time: noon},
		{Block: content.User("Why?"), Origin: user, Time: noon, Author: "ada", Key: Key{Text: "k1"}, Label: Label{Text: "first", Meta: map[string]string{"b": "2", "a": "1"}}},
		{Block: content.Reasoning{Format: content.FormatAnthropic, Text: "because"}, Origin: reply, Time: noon},
		{Block: content.Assistant("Because."), Index: 1, Origin: reply, Time: noon, Priority: priority.Pinned},
		{Op: Annotate, Target: objects.Hash([]byte("x")), Priority: priority.Skip, Block: content.Note("noise"), Time: noon},
		{Op: Annotate, Target: objects.Hash([]byte("y")), Time: noon},
		{Op: Edit, Target: objects.Hash([]byte("z")), Block: content.User("Why not?"), Time: noon},
		{Block: content.ToolResult{CallID: "c", Text: "4"}, Time: noon},
		{
			Op: Compress, First: objects.Hash([]byte("a")), Target: objects.Hash([]byte("b")), Scope: ScopeDialogue,
			Block: content.Text{Of: content.KindSummary, Text: "Somebody asked why."}, Time: noon,
		},
		{Block: content.Assistant("Yes."), Key: Key{Kind: KeyRequest, Text: "k1"}, Time: noon},
		{Block: content.Assistant("No."), Key: Key{Kind: KeyResponse, Text: "msg_2"}, Time: noon},
		{Block: content.User("And?"), Key: Key{Kind: KeyImport, Text: "6f0c2d1e", Importer: "claude-code", Block: 1}, Time: noon},
		{Block: content.User("So?"), Key: Key{Kind: KeyImport}, Time: noon},
	}
}

func write(t testing.TB, s objects.Store, drafts ...Draft) []*Commit {
	t.Helper()
	commits, put, err := Write(nil, drafts...)
	if err == nil {
		err = s.Apply(t.Context(), objects.Batch{Put: put})
	}
	if err != nil {
		t.Fatal(err)
	}
	return commits
}

func TestCommitRoundTrip(t *testing.T) {
	s := objects.Memory()
	commits := write(t, s, conversation()...)
	i := len(commits)
	for c, err := range Walk(t.Context(), s, commits[i-1].ID, 0) {
		i--
		if err == nil {
			err = Load(t.Context(), s, c)
		}
		if err != nil || !reflect.DeepEqual(c, commits[i]) {
			t.Fatalf("commit %d: %+v, %v\nwant %+v", i, c, err, commits[i])
		}
	}
	if i != 0 {
		t.Errorf("the walk ended %d commits above the root", i)
	}
	d := conversation()[2]
	origin, err := ReadOrigin(t.Context(), s, commits[2].OriginID)
	d.Origin.Started = d.Origin.Started.Truncate(time.Millisecond)
	if err != nil || !reflect.DeepEqual(origin, d.Origin) {
		t.Errorf("origin %+v, %v\nwant %+v", origin, err, d.Origin)
	}
	if commits[2].OriginID != commits[3].OriginID {
		t.Error("blocks of one message do not share their origin")
	}
	label, err := ReadLabel(t.Context(), s, commits[1].LabelID)
	if want := conversation()[1].Label; err != nil || !reflect.DeepEqual(label, want) {
		t.Errorf("label %+v, %v", label, err)
	}
}

func TestDepth(t *testing.T) {
	commits, _, err := Write(nil, conversation()...)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range commits {
		if c.Depth != uint64(i) {
			t.Errorf("commit %d has depth %d", i, c.Depth)
		}
	}
}

func TestLongContentIsStoredInChunks(t *testing.T) {
	s := objects.Memory()
	text := strings.Repeat("0123456789abcdef", 5<<20/16)
	c := write(t, s, Draft{Block: content.User(text)})[0]
	c.Block = nil
	if err := Load(t.Context(), s, c); err != nil || c.Block.String() != text {
		t.Fatalf("%d bytes did not come back: %v", len(text), err)
	}
	if _, _, err := Write(nil, Draft{Block: content.User(strings.Repeat("x", content.MaxSize))}); !errors.Is(err, objects.ErrLimit) {
		t.Errorf("a block over the limit: %v, want ErrLimit", err)
	}
}

func TestLoadNamesTheCommitWhoseContentIsMissing(t *testing.T) {
	commits, _, err := Write(nil, Draft{Block: content.User("gone")})
	if err != nil {
		t.Fatal(err)
	}
	commits[0].Block = nil
	err = Load(t.Context(), objects.Memory(), commits[0])
	if !errors.Is(err, objects.ErrNotFound) || !strings.Contains(err.Error(), commits[0].ID.Short()) {
		t.Errorf("%v, want a not-found that names %s", err, commits[0].ID.Short())
	}
}

func TestMergeBase(t *testing.T) {
	s := objects.Memory()
	at := func(parent *Commit, text string) *Commit {
		c, put, err := Write(parent, Draft{Block: content.User(text)})
		if err == nil {
			err = s.Apply(t.Context(), objects.Batch{Put: put})
		}
		if err != nil {
			t.Fatal(err)
		}
		return c[0]
	}
	root := at(nil, "root")
	fork := at(root, "fork")
	left := at(at(at(fork, "a"), "b"), "c")
	right := at(fork, "d")
	other := at(nil, "other root")
	for _, c := range []struct{ a, b, want *Commit }{
		{left, right, fork}, {right, left, fork}, {left, left, left}, {left, fork, fork}, {left, other, &Commit{}},
	} {
		if got, err := MergeBase(t.Context(), s, c.a.ID, c.b.ID); got != c.want.ID || err != nil {
			t.Errorf("base of %v and %v: %v, %v", c.a.Block, c.b.Block, got, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	_, put, err := Write(nil, Draft{Block: content.User("x")}, Draft{Block: content.User("y")})
	if err != nil {
		t.Fatal(err)
	}
	good := put[1]
	spelled := func(from int, other ...byte) objects.Object {
		return objects.New(good.Kind, good.Parents, good.Links, append(other, good.Data[from:]...))
	}
	op, kind, role := good.Data[1], good.Data[3], good.Data[5] // fields 1 to 3; the next is 5
	without := &Commit{Op: Append, Kind: content.KindUser}
	joined := &Commit{Op: Merge, Kind: content.KindNote, Parents: good.Links, Depth: 1}
	keyed := func(k Key) objects.Object {
		c, err := Parse(good)
		if err != nil {
			t.Fatal(err)
		}
		c.Key = k
		return c.encodeAndSetID()
	}
	if _, err := Parse(keyed(Key{Kind: KeyImport, Importer: "x", Block: 1})); err != nil {
		t.Error(err)
	}
	for name, obj := range map[string]objects.Object{
		"another kind":   objects.New(objects.KindContent, good.Parents, good.Links, good.Data),
		"no content":     objects.New(good.Kind, good.Parents, nil, good.Data),
		"a link more":    objects.New(good.Kind, good.Parents, append(good.Links, good.ID), good.Data),
		"a parent more":  objects.New(good.Kind, []objects.ID{put[0].ID}, good.Links, good.Data),
		"a field more":   objects.New(good.Kind, good.Parents, good.Links, append(bytes.Clone(good.Data), 0xf8, 0x01, 0x01)),
		"no words":       without.encodeAndSetID(),
		"no such key":    keyed(Key{Kind: keyEnd, Text: "k"}),
		"no key":         keyed(Key{Kind: KeyRequest}),
		"no import":      keyed(Key{Text: "k", Importer: "x"}),
		"no position":    keyed(Key{Kind: KeyResponse, Text: "k", Block: 1}),
		"half a merge":   joined.encodeAndSetID(),
		"a long number":  spelled(2, 0x08, 0x80|op, 0x00),
		"a zero":         spelled(6, 0x08, op, 0x10, kind, 0x18, role, 0x20, 0x00),
		"descending":     spelled(4, 0x10, kind, 0x08, op),
		"no record":      objects.New(good.Kind, good.Parents, good.Links, nil),
		"a cut record":   objects.New(good.Kind, good.Parents, good.Links, good.Data[:len(good.Data)-1]),
		"an edit of air": objects.New(good.Kind, good.Parents, good.Links, append([]byte{0x08, byte(Edit)}, good.Data[2:]...)),
	} {
		if _, err := Parse(obj); !errors.Is(err, objects.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
}

// TestVectors holds the bytes on disk still: every object of a history with
// every field.
func TestVectors(t *testing.T) {
	_, put, err := Write(nil, conversation()...)
	if err != nil {
		t.Fatal(err)
	}
	holdStill(t, "../testdata/vectors/commits.json", put)
	holdStill(t, "../testdata/vectors/merge.json", merged(t))
}

// merged returns the objects of two lines and of what joins them.
func merged(t *testing.T) []objects.Object {
	t.Helper()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var put []objects.Object
	add := func(parent *Commit, d Draft) *Commit {
		d.Time = at
		c, objs, err := Write(parent, d)
		if err != nil {
			t.Fatal(err)
		}
		put = append(put, objs...)
		return c[0]
	}
	root := add(nil, Draft{Block: content.User("Where to?")})
	ours := add(root, Draft{Block: content.Assistant("Oslo.")})
	thought := add(root, Draft{Block: content.Reasoning{Text: "By train."}})
	theirs := add(thought, Draft{Block: content.Assistant("Bergen."), Index: 1})
	join := add(ours, Draft{Op: Merge, SecondParent: theirs, Author: "ada"})
	add(join, Draft{Block: content.User("Thanks.")})
	return put
}

// holdStill compares objects with those in a file.
func holdStill(t *testing.T, file string, put []objects.Object) {
	t.Helper()
	type vector struct {
		ID, Kind       string
		Parents, Links []objects.ID
		Data           string
	}
	var got []vector
	for _, o := range put {
		got = append(got, vector{o.ID.String(), o.Kind.String(), o.Parents, o.Links, hex.EncodeToString(o.Data)})
	}
	b, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	if *update {
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, want) {
		t.Errorf("objects differ from %s (-update writes them anew):\n%s", file, b)
	}
}

func FuzzParse(f *testing.F) {
	_, put, err := Write(nil, conversation()...)
	if err != nil {
		f.Fatal(err)
	}
	for _, o := range put {
		f.Add(byte(o.Kind), len(o.Parents), len(o.Links), o.Data)
	}
	f.Fuzz(func(t *testing.T, kind byte, parents, links int, data []byte) {
		ids := make([]objects.ID, 4)
		for i := range ids {
			ids[i] = objects.Hash([]byte{byte(i)})
		}
		obj := objects.New(objects.Kind(kind), ids[:parents&3], ids[:links&3], data)
		if c, err := Parse(obj); err == nil && !bytes.Equal(c.encodeAndSetID().Data, data) {
			t.Errorf("commit %x is written %x", data, c.encodeAndSetID().Data)
		}
		if o, err := ParseOrigin(obj); err == nil && !bytes.Equal(o.Object().Data, data) {
			t.Errorf("origin %x is written %x", data, o.Object().Data)
		}
		if l, err := ParseLabel(obj); err == nil && !bytes.Equal(l.Object().Data, data) {
			t.Errorf("label %x is written %x", data, l.Object().Data)
		}
	})
}

// TestOriginReadsEveryNumberItWrites, such as the counts of a store that was written before
// counts were bounded.
func TestOriginReadsEveryNumberItWrites(t *testing.T) {
	for _, n := range []int64{0, 1, 1<<62 - 1, 1 << 62, math.MaxInt64} {
		o := Origin{
			Usage:    content.Usage{Input: n, Output: n, Reasoning: n, Cached: n, CacheWrite: n},
			Duration: time.Duration(n).Truncate(time.Millisecond), FirstToken: time.Duration(n).Truncate(time.Millisecond),
		}
		got, err := ParseOrigin(o.Object())
		if err != nil || !reflect.DeepEqual(*got, o) {
			t.Errorf("%d: %+v, %v", n, got, err)
		}
	}
}
