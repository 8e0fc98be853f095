package commit

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
	"pgregory.net/rapid"
)

// story is a history that is drawn, with the objects of it in the order of writing.
type story struct {
	tips []*Commit
	put  []objects.Object
}

func (s *story) write(t *rapid.T, parent *Commit, d Draft) {
	commits, put, err := Write(parent, d)
	if err != nil {
		t.Fatal(err)
	}
	s.tips, s.put = append(s.tips, commits...), append(s.put, put...)
}

// drawDraft draws a commit upon what there is: plain ones mostly.
func drawDraft(t *rapid.T, s *story, parent *Commit) Draft {
	any := func(label string) *Commit { return rapid.SampledFrom(s.tips).Draw(t, label) }
	text := rapid.SampledFrom([]string{"", "yes", "why?", "because of that", string(make([]byte, 300))}).Draw(t, "text")
	d := Draft{
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
		d.Op, d.Target = Edit, any("target").ID
	case what == 1 && parent != nil:
		d.Op, d.Target, d.Block, d.Priority = Annotate, any("target").ID, nil, priority.Skip
	case what == 2 && parent != nil:
		d.Op, d.First, d.Target, d.Covers = Compress, any("first").ID, any("target").ID, CoverDialogue
		d.Block = content.Text{Of: content.KindSummary, Text: text}
	case what == 3 && parent != nil:
		if second := any("second"); second.ID != parent.ID {
			d.Op, d.Second, d.Block, d.Role, d.Index = Merge, second, nil, content.NoRole, 0
		}
	case what == 4:
		d.Key = "key"
	case what < 9:
		d.Origin = &Origin{Source: SourceUser, Session: text}
	case what == 9:
		d.Label = Label{Text: "a word"}
	}
	return d
}

func drawStory(t *rapid.T) *story {
	s := &story{}
	for range rapid.IntRange(1, 30).Draw(t, "commits") {
		var parent *Commit
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

// TestSheetsGiveBackWhatWasWritten lays the objects of any history into sheets, cut
// anywhere, and reads them both ways: as objects, and as commits without any.
func TestSheetsGiveBackWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawStory(t).put
		size := rapid.IntRange(1, len(list)).Draw(t, "size")
		for part := range slices.Chunk(list, size) {
			wantSheet(t, part)
		}
	})
}

func wantSheet(t *rapid.T, list []objects.Object) {
	ids, table, body := objects.LaySheet(list, 0, nil)
	s, err := objects.OpenSheet(len(list), ids, table, nil)
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
	again, told, rest := objects.LaySheet(list, 0, nil)
	if !bytes.Equal(ids, again) || !bytes.Equal(table, told) || !bytes.Equal(body, rest) {
		t.Fatal("the same objects are laid in two ways")
	}
}

// line writes a plain history of so many commits: a question, and an answer with a
// thought before it.
func plainLine(t testing.TB, n int) (list []objects.Object) {
	t.Helper()
	var drafts []Draft
	answer := &Origin{Source: SourceModel, Model: "m"}
	for i := range n {
		d := Draft{Time: time.UnixMilli(1784000000000 + int64(i*1717)), Author: "ada"}
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
	_, list, err := Write(nil, drafts...)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestDamagedSheetsGiveNothingWrong flips every bit of a table: no object that hashes
// to its id is another, and those of which nothing is known are refused. It holds for
// what can be made of it by force, too; then a byte that is wrong costs no more than
// what is told by it.
func TestDamagedSheetsGiveNothingWrong(t *testing.T) {
	list := plainLine(t, 150)
	ids, table, _ := objects.LaySheet(list, 0, nil)
	var most, lost int
	for bit := 0; bit < len(table)*8; bit += 11 {
		bad := bytes.Clone(table)
		bad[bit/8] ^= 1 << (bit % 8)
		if s, err := objects.OpenSheet(len(list), ids, bad, nil); err == nil {
			wantNothingElse(t, list, s)
		}
		found := map[objects.ID]bool{}
		for _, s := range objects.SalvageSheet(len(list), ids, bad) {
			for _, id := range wantNothingElse(t, list, s) {
				found[id] = true
			}
		}
		most, lost = max(most, 150-len(found)), lost+150-len(found)
	}
	if mean := lost * 11 / (len(table) * 8); mean > 75 {
		t.Errorf("a flipped bit costs %d commits of 150 in the mean, %d at most", mean, most)
	}
}

// wantNothingElse gives the commits of a sheet that are what their ids say.
func wantNothingElse(t *testing.T, list []objects.Object, s *objects.Sheet) (found []objects.ID) {
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

// TestIDsThatComeLater opens a sheet without the ids of its commits but those that a merge
// has for parents, and fills in one after the other: each commit is told by those before it.
func TestIDsThatComeLater(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawStory(t).put
		ids, table, _ := objects.LaySheet(list, 0, nil)
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
		s, err := objects.OpenSheet(len(list), known, table, nil)
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

// sheetVector is a sheet, and what it holds.
type sheetVector struct {
	Count   int      `json:"count"`
	IDs     string   `json:"ids"`
	Table   string   `json:"table"`
	Objects []string `json:"objects"` // id, kind, and of commits the data
}

// TestSheetVector reads a sheet of every kind of commit, and one of many objects and of
// edges that no form has, as they were written when the format was made. The
// code must still write the same bytes.
func TestSheetVector(t *testing.T) {
	_, every, err := Write(nil, conversation()...)
	if err != nil {
		t.Fatal(err)
	}
	holdSheet(t, "../testdata/vectors/sheet.json", append(plainLine(t, 6), every...))
	holdSheet(t, "../testdata/vectors/sheet_many.json", append(plainLine(t, 60), merged(t)...))
}

func holdSheet(t *testing.T, sheetFile string, list []objects.Object) {
	t.Helper()
	ids, table, _ := objects.LaySheet(list, 0, nil)
	v := sheetVector{Count: len(list), IDs: hex.EncodeToString(ids), Table: hex.EncodeToString(table)}
	s, err := objects.OpenSheet(len(list), ids, table, nil)
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
		if err := os.WriteFile(sheetFile, have, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(sheetFile)
	if err != nil || !bytes.Equal(have, want) {
		t.Errorf("the sheet is another than that of the vectors: %v\n%s", err, have)
	}
}

func FuzzSheet(f *testing.F) {
	list := plainLine(f, 5)
	ids, table, _ := objects.LaySheet(list, 0, nil)
	f.Add(len(list), ids, table)
	f.Fuzz(func(t *testing.T, n int, ids, table []byte) {
		s, err := objects.OpenSheet(n, ids, table, nil)
		if err != nil {
			return
		}
		var room []objects.ID
		for i := range s.Len() {
			_ = s.Object(i, &room) // what it says is held against the id by others
		}
	})
}
