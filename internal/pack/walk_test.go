package pack

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// branchy writes histories that lie mixed: lines that part from one another, with labels,
// system blocks, thoughts and origins that change.
func branchy(t *testing.T, r *rand.Rand, n int) (list []objects.Object, tips []*commit.Commit) {
	t.Helper()
	for i := range n {
		d := commit.Draft{Time: time.UnixMilli(1784000000000 + int64(i)*1000 - r.Int64N(3000)), Author: "ada"}
		if last := i / 50; r.IntN(3) > 0 {
			d.Origin = &commit.Origin{Source: commit.SourceModel, Model: fmt.Sprint("m", last)}
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
			d.Block, d.Label = content.User(text), commit.Label{Text: fmt.Sprint("label ", i%4)}
		default:
			d.Block = content.Assistant(text)
		}
		var parent *commit.Commit
		if len(tips) > 0 {
			parent = tips[max(0, len(tips)-1-r.IntN(2)*r.IntN(9))]
		}
		made, objs, err := commit.Write(parent, d)
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

// TestAppendChain walks from every commit of tables that follow one another, with any
// limit: each commit is as it was written, and its spot is where its content is.
func TestAppendChain(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(1, seed))
	list, _ := branchy(t, r, 400)
	for from := 0; from < len(list); {
		part := list[from:min(from+1+r.IntN(300), len(list))]
		from += len(part)
		ids, table, body := EncodeTable(part, 0)
		s, err := ParseTable(len(part), ids, table, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := map[objects.ID]int{}
		for i := range part {
			at[part[i].ID] = i
		}
		var a Arena
		for tip := range part {
			if part[tip].Kind != objects.KindCommit {
				continue
			}
			limit := r.IntN(5) * r.IntN(20)
			got, spots := s.AppendChain(nil, nil, tip, limit, 7, &a)
			row, known := tip, true
			for n := range got {
				want := part[row]
				if !known || !reflect.DeepEqual(got[n], want) {
					t.Fatalf("seed %d: commit %d of the chain from %d\nhave %+v\nwant %+v", seed, n, tip, got[n], want)
				}
				spot := objects.Locator{}
				if k, ok := at[want.Links[0]]; ok {
					offset, size := s.Data(k)
					spot = objects.Locator{7, uint64(offset)<<32 | uint64(size)}
					if string(body[offset:offset+size]) != string(part[k].Data) {
						t.Fatalf("seed %d: content %d is not at %d", seed, k, offset)
					}
				}
				if spots[n] != spot {
					t.Fatalf("seed %d: spot %d is %v, want %v", seed, n, spots[n], spot)
				}
				if known = len(want.Parents) > 0; known {
					row, known = at[want.Parents[0]]
				}
			}
			if known && len(got) != limit || limit > 0 && len(got) > limit {
				t.Fatalf("seed %d: %d commits from %d with limit %d", seed, len(got), tip, limit)
			}
		}
	}
}
