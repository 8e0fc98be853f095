package commit

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// branchy writes histories that lie mixed: lines that part from one another, with labels,
// system blocks, thoughts and origins that change.
func branchy(t *testing.T, r *rand.Rand, n int) (list []objects.Object, tips []*Commit) {
	t.Helper()
	for i := range n {
		d := Draft{Time: time.UnixMilli(1784000000000 + int64(i)*1000 - r.Int64N(3000)), Author: "ada"}
		if last := i / 50; r.IntN(3) > 0 {
			d.Origin = &Origin{Source: SourceModel, Model: fmt.Sprint("m", last)}
			if last%3 == 1 { // each has its own
				d.Origin.Model = fmt.Sprint("n", i)
			}
		}
		switch text := fmt.Sprint("said as the ", i); r.IntN(12) {
		case 0:
			d.Block = content.System(text)
		case 1:
			d.Block, d.Index = content.Reasoning{Format: content.FormatParsed, Text: text}, i%3
		case 2:
			d.Block, d.Label = content.User(text), Label{Text: fmt.Sprint("label ", i%4)}
		default:
			d.Block = content.Assistant(text)
		}
		var parent *Commit
		if len(tips) > 0 {
			parent = tips[max(0, len(tips)-1-r.IntN(2)*r.IntN(9))]
		}
		made, objs, err := Write(parent, d)
		if err != nil {
			t.Fatal(err)
		}
		list, tips = append(list, objs...), append(tips, made...)
	}
	seen := map[objects.ID]bool{}
	once := list[:0]
	for _, o := range list {
		if !seen[o.ID] {
			seen[o.ID], once = true, append(once, o)
		}
	}
	return once, tips
}

// TestLinesOfASheet walks from every commit of sheets that lie one behind the other, with
// any limit, and fills in what Load does: each commit is as it was written, and says where
// its content lies.
func TestLinesOfASheet(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(1, seed))
	list, _ := branchy(t, r, 400)
	var commit Commit
	for from := 0; from < len(list); {
		part := list[from:min(from+1+r.IntN(300), len(list))]
		from += len(part)
		ids, table, body := objects.LaySheet(part, 0, nil)
		s, err := objects.OpenSheet(len(part), ids, table, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := map[objects.ID]int{}
		for i := range part {
			at[part[i].ID] = i
		}
		for tip := range part {
			if part[tip].Kind != objects.KindCommit {
				continue
			}
			run := objects.SheetRun(s, tip, r.IntN(5)*r.IntN(20), make([]int16, len(part)))
			run.Body = 7
			_, places := run.Sheet()
			next := 0
			yield := func(c *Commit, err error) bool {
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				want, err := Parse(part[places[next]])
				if err != nil {
					t.Fatal(err)
				}
				if k, ok := at[c.Content]; ok {
					from, size := s.Data(k)
					want.Spot = objects.Spot{Body: 7, Piece: uint64(from)<<32 | uint64(size)}
					if string(body[from:from+size]) != string(part[k].Data) {
						t.Fatalf("seed %d: content %d does not lie at %d", seed, k, from)
					}
				}
				if !reflect.DeepEqual(c, want) {
					t.Fatalf("seed %d: commit %d of the line from %d\nhave %+v\nwant %+v", seed, next, tip, c, want)
				}
				switch r.IntN(5) {
				case 0:
					c.Block = content.User("it was loaded")
				case 1:
					c.From = &Origin{}
				case 2:
					c.Words.Text = "the words of a label"
				case 3:
					c.Erased = &objects.Tombstone{}
				}
				next++
				return true
			}
			if !commit.yieldRun(&run, yield) || next != len(places) {
				t.Fatalf("seed %d: %d commits of %d from %d", seed, next, len(places), tip)
			}
		}
	}
}
