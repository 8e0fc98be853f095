package pack

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the vectors")

// story is a random history, with its objects in the order in which they were written.
type story struct {
	tips []*commit.Commit
	put  []objects.Object
}

func (s *story) write(t *rapid.T, parent *commit.Commit, d commit.Draft) {
	commits, put, err := commit.Write(parent, d)
	if err != nil {
		t.Fatal(err)
	}
	s.tips, s.put = append(s.tips, commits...), append(s.put, put...)
}

// drawDraft draws the next commit of a story, mostly a plain one.
func drawDraft(t *rapid.T, s *story, parent *commit.Commit) commit.Draft {
	any := func(label string) *commit.Commit { return rapid.SampledFrom(s.tips).Draw(t, label) }
	text := rapid.SampledFrom([]string{"", "yes", "why?", "because of that", string(make([]byte, 300))}).Draw(t, "text")
	d := commit.Draft{
		Block:    rapid.SampledFrom([]content.Block{content.User(text), content.Assistant(text), content.System(text), content.ToolResult{CallID: "c", Text: text}}).Draw(t, "block"),
		Index:    rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3, 700, math.MaxInt32}).Draw(t, "index"),
		Author:   rapid.SampledFrom([]string{"ada", "ada", "", "bo", "ꙮ\x00", string(bytes.Repeat([]byte{'x'}, 300))}).Draw(t, "author"),
		Time:     time.UnixMilli(1784000000000 + rapid.Int64Range(-100, 60_000).Draw(t, "ms")),
		Priority: rapid.SampledFrom([]priority.Level{priority.Unset, priority.Unset, priority.Pinned, priority.Skip}).Draw(t, "priority"),
	}
	if parent != nil && rapid.Bool().Draw(t, "goes on") {
		d.Index = min(parent.Index+1, math.MaxInt32)
	}
	if rapid.IntRange(0, 9).Draw(t, "far") == 0 {
		d.Time = time.UnixMilli(rapid.Int64().Draw(t, "far time"))
	}
	switch what := rapid.IntRange(0, 19).Draw(t, "what"); {
	case what == 0 && parent != nil:
		d.Op, d.Target = commit.Edit, any("target").ID
	case what == 1 && parent != nil:
		d.Op, d.Target, d.Block, d.Priority = commit.Annotate, any("target").ID, nil, priority.Skip
	case what == 2 && parent != nil:
		d.Op, d.First, d.Target, d.Scope = commit.Compress, any("first").ID, any("target").ID, commit.ScopeDialogue
		d.Block = content.Text{Of: content.KindSummary, Text: text}
	case what == 3 && parent != nil:
		if second := any("second"); second.ID != parent.ID {
			d.Op, d.SecondParent, d.Block, d.Role, d.Index = commit.Merge, second, nil, content.NoRole, 0
		}
	case what == 4:
		d.Key.Text = "key"
	case what < 9:
		d.Origin = &commit.Origin{Source: commit.SourceUser, Session: text}
	case what == 9:
		d.Label = commit.Label{Text: "a word"}
	}
	return d
}

func drawStory(t *rapid.T) *story {
	s := &story{}
	for range rapid.IntRange(1, 30).Draw(t, "commits") {
		var parent *commit.Commit
		if len(s.tips) > 0 && rapid.IntRange(0, 30).Draw(t, "root") > 0 {
			parent = s.tips[len(s.tips)-1]
			if rapid.IntRange(0, 9).Draw(t, "branch") == 0 {
				parent = rapid.SampledFrom(s.tips).Draw(t, "parent")
			}
		}
		s.write(t, parent, drawDraft(t, s, parent))
	}
	return s
}

// TestTableRoundTrip encodes the objects of any history, cut anywhere, and parses the
// tables.
func TestTableRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawStory(t).put
		size := rapid.IntRange(1, len(list)).Draw(t, "size")
		for part := range slices.Chunk(list, size) {
			wantTable(t, part)
		}
	})
}

func wantTable(t *rapid.T, list []objects.Object) {
	ids, table, body := EncodeTable(list, 0)
	s, err := ParseTable(len(list), ids, table, nil)
	if err != nil {
		t.Fatal(err)
	}
	var room []objects.ID
	for i := range list {
		o := s.Object(i, &room)
		if o.Kind != objects.KindCommit {
			from, size := s.Data(i)
			o.Data = body[from : from+size]
		}
		if err := o.Check(); err != nil || o.ID != list[i].ID {
			t.Fatalf("object %d: %v\nhave %+v\nwant %+v", i, err, o, list[i])
		}
	}
	again, told, rest := EncodeTable(list, 0)
	if !bytes.Equal(ids, again) || !bytes.Equal(table, told) || !bytes.Equal(body, rest) {
		t.Fatal("the same objects are encoded in two ways")
	}
}

// plainLine returns the objects of a plain history of n commits: questions, and answers
// with reasoning before them.
func plainLine(t testing.TB, n int) (list []objects.Object) {
	t.Helper()
	var drafts []commit.Draft
	answer := &commit.Origin{Source: commit.SourceModel, Model: "m"}
	for i := range n {
		d := commit.Draft{Time: time.UnixMilli(1784000000000 + int64(i*1717)), Author: "ada"}
		switch text := fmt.Sprintf("what is said as the %d.", i); i % 3 {
		case 0:
			d.Block = content.User(text)
		case 1:
			d.Block, d.Origin = content.Reasoning{Format: content.FormatParsed, Text: text}, answer
		case 2:
			d.Block, d.Origin, d.Index = content.Assistant(text), answer, 1
		}
		drafts = append(drafts, d)
	}
	_, list, err := commit.Write(nil, drafts...)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestDamagedTableGivesNothingWrong flips bits of a table: no object that hashes to its
// id is another, neither in a table that is parsed nor in one that is salvaged. In a
// salvaged one a wrong byte costs at most half of the commits in the mean.
func TestDamagedTableGivesNothingWrong(t *testing.T) {
	step := 37 // odd, so that it comes to every bit of a byte
	if os.Getenv("TRACT_TORTURE") != "" {
		step = 1
	}
	list := plainLine(t, 150)
	ids, table, _ := EncodeTable(list, 0)
	var most, lost int
	for bit := 0; bit < len(table)*8; bit += step {
		bad := bytes.Clone(table)
		bad[bit/8] ^= 1 << (bit % 8)
		if s, err := ParseTable(len(list), ids, bad, nil); err == nil {
			wantNothingElse(t, list, s)
		}
		found := map[objects.ID]bool{}
		for _, s := range SalvageTable(len(list), ids, bad) {
			for _, id := range wantNothingElse(t, list, s) {
				found[id] = true
			}
		}
		most, lost = max(most, 150-len(found)), lost+150-len(found)
	}
	if mean := lost * step / (len(table) * 8); mean > 75 {
		t.Errorf("a flipped bit costs %d commits of 150 in the mean, %d at most", mean, most)
	}
}

// wantNothingElse returns the commits of a table that hash to their ids.
func wantNothingElse(t *testing.T, list []objects.Object, s *Table) (found []objects.ID) {
	t.Helper()
	for i := range s.Len() {
		var room []objects.ID
		if s.Kind(i) != objects.KindCommit {
			continue
		}
		o := s.Object(i, &room)
		if o.Check() != nil {
			continue
		}
		if !bytes.Equal(o.Data, list[i].Data) {
			t.Fatalf("object %d is another", i)
		}
		found = append(found, o.ID)
	}
	return found
}

// TestIDsAddedAfterParsing parses a table without the ids of its commits, except those of the
// parents of merges, and adds one id after the other: each is the hash of a commit whose edges have
// their ids.
func TestIDsAddedAfterParsing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawStory(t).put
		ids, table, _ := EncodeTable(list, 0)
		merged := map[objects.ID]bool{}
		for _, o := range list {
			for _, p := range o.Parents {
				merged[p] = merged[p] || len(o.Parents) > 1
			}
		}
		known := bytes.Clone(ids)
		for i, o := range list {
			if o.Kind == objects.KindCommit && !merged[o.ID] {
				clear(known[i*len(o.ID) : (i+1)*len(o.ID)])
			}
		}
		s, err := ParseTable(len(list), known, table, nil)
		if err != nil {
			t.Fatal(err)
		}
		var room []objects.ID
		for i, want := range list {
			if want.Kind != objects.KindCommit {
				continue
			}
			o := s.Object(i, &room)
			if o.Sum() != want.ID {
				t.Fatalf("commit %d:\nhave %+v\nwant %+v", i, o, want)
			}
			copy(known[i*len(want.ID):], want.ID[:])
		}
	})
}

// tableVector is an encoded table, and what it holds.
type tableVector struct {
	Count   int      `json:"count"`
	IDs     string   `json:"ids"`
	Table   string   `json:"table"`
	Objects []string `json:"objects"` // id, kind, and of commits the data
}

// TestTableVector compares the tables of every kind of commit, and of many objects with
// explicit targets, with those in files.
func TestTableVector(t *testing.T) {
	compareTable(t, "pack_table.json", append(plainLine(t, 6), vectorObjects(t, "commits.json")...))
	compareTable(t, "pack_table_many.json", append(plainLine(t, 60), vectorObjects(t, "merge.json")...))
}

const vectors = "../../testdata/vectors/"

// vectorObjects returns the objects of a vector of package commit.
func vectorObjects(t *testing.T, file string) (list []objects.Object) {
	t.Helper()
	var vector []struct {
		Kind           string
		Parents, Links []objects.ID
		Data           string
	}
	b, err := os.ReadFile(vectors + file)
	if err == nil {
		err = json.Unmarshal(b, &vector)
	}
	for _, v := range vector {
		kind, kindErr := objects.ParseKind(v.Kind)
		data, dataErr := hex.DecodeString(v.Data)
		err = errors.Join(err, kindErr, dataErr)
		list = append(list, objects.New(kind, v.Parents, v.Links, data))
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func compareTable(t *testing.T, file string, list []objects.Object) {
	t.Helper()
	ids, table, _ := EncodeTable(list, 0)
	v := tableVector{Count: len(list), IDs: hex.EncodeToString(ids), Table: hex.EncodeToString(table)}
	s, err := ParseTable(len(list), ids, table, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		var room []objects.ID
		o := s.Object(i, &room)
		v.Objects = append(v.Objects, fmt.Sprintf("%s %s %x", o.ID, o.Kind, o.Data))
	}
	have, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	have = append(have, '\n')
	if *update {
		if err := os.WriteFile(vectors+file, have, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(vectors + file)
	if err != nil || !bytes.Equal(have, want) {
		t.Errorf("the table differs from %s (-update writes it): %v\n%s", file, err, have)
	}
}

func FuzzTable(f *testing.F) {
	list := plainLine(f, 5)
	ids, table, _ := EncodeTable(list, 0)
	f.Add(len(list), ids, table)
	f.Fuzz(func(t *testing.T, n int, ids, table []byte) {
		s, err := ParseTable(n, ids, table, nil)
		if err != nil {
			return
		}
		var room []objects.ID
		for i := range s.Len() {
			_ = s.Object(i, &room) // callers hash it
		}
	})
}
