package compile

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	_ "github.com/tract-vcs/tract/objects/bolt"
	"github.com/tract-vcs/tract/priority"
	"pgregory.net/rapid"
)

// told is a history as it comes about at random.
type told struct {
	put  []objects.Object
	all  []*commit.Commit
	tip  *commit.Commit
	gone []*commit.Commit // whose words are erased
}

func (h *told) write(t rapid.TB, d commit.Draft) {
	d.Key = fmt.Sprint(len(h.all)) // so that no commit comes twice
	commits, put, err := commit.Write(h.tip, d)
	if err != nil {
		t.Fatal(err)
	}
	h.put, h.tip = append(h.put, put...), commits[0]
	h.all = append(h.all, commits[0])
}

// drawTold is a history in which much is said about what was said before: edits,
// annotations, summaries, and now and then a merge.
func drawTold(t *rapid.T) *told {
	h := &told{all: []*commit.Commit{{Op: commit.Edit}}}
	tells := rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "tells") // of summaries and merges
	for range rapid.IntRange(60, 240).Draw(t, "commits") {
		switch what := rapid.IntRange(0, 99).Draw(t, "what"); {
		case what < tells && len(h.all) > 20:
			last := len(h.all) - rapid.IntRange(1, 15).Draw(t, "last")
			h.write(t, commit.Draft{Op: commit.Compress, Block: content.Text{Of: content.KindSummary, Text: "in short"}, First: h.all[last-4].ID, Target: h.all[last].ID})
		case what > 99-tells && len(h.all) > 20:
			tip := h.tip
			h.tip = h.all[len(h.all)-8]
			h.write(t, commit.Draft{Block: content.User("elsewhere")})
			side := h.tip
			h.tip = tip
			h.write(t, commit.Draft{Op: commit.Merge, Second: side, Brings: []*commit.Commit{side}})
		default:
			h.write(t, drawDraft(t, h.all))
		}
	}
	for range rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "erased") {
		if c := rapid.SampledFrom(h.all[1:]).Draw(t, "gone"); c.Op == commit.Append {
			h.gone = append(h.gone, c)
		}
	}
	return h
}

// keep puts a history into a store, most of it into packs.
func (h *told) keep(t *testing.T) objects.Store {
	t.Helper()
	s, err := objects.Open(t.Context(), filepath.Join(t.TempDir(), "store"), objects.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	cleaner, _ := objects.As[objects.Cleaner](s)
	late := len(h.put) * 9 / 10
	for _, put := range [][]objects.Object{h.put[:late], h.put[late:]} {
		if err := s.Apply(t.Context(), objects.Batch{Put: put}); err != nil {
			t.Fatal(err)
		}
		if _, err := cleaner.Sweep(t.Context(), objects.Sweep{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range h.gone {
		if _, err := objects.Erase(t.Context(), s, []objects.Tombstone{tombstoneOf(c)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// loads notes what is loaded while somebody walks. It remembers nothing.
type loads struct {
	objects.Reader
	objects.Bulk
	fail error

	mu    sync.Mutex
	ahead map[objects.ID]int
}

func (l *loads) Load(ctx context.Context, w objects.Wanted) ([]int, error) {
	if w.Room != nil && l.fail != nil {
		return nil, l.fail
	}
	if l.mu.Lock(); w.Room != nil {
		for i := range w.Len {
			id, _ := w.At(i)
			l.ahead[id]++
		}
	}
	l.mu.Unlock()
	return l.Bulk.Load(ctx, w)
}

// eager loads ahead whatever it can, in small pieces.
func eager(t *testing.T, r objects.Reader, head objects.ID, o Options) (*Prompt, error) {
	t.Helper()
	a := newAhead(t.Context(), r, o)
	a.least, a.step = 0, 64
	defer a.stop()
	return chain(t.Context(), r, head, o, a, maxScan)
}

// TestLoadingAheadChangesNothing compiles histories in which later commits decide what of
// the earlier is sent, with everything loaded ahead that seems to be sure, and with
// nothing.
func TestLoadingAheadChangesNothing(t *testing.T) {
	ahead := 0
	said := map[commit.Op]int{}
	for seed := range 40 {
		h := rapid.Custom(drawTold).Example(seed)
		for _, c := range h.all {
			said[c.Op]++
		}
		s := h.keep(t)
		for _, o := range []Options{{}, include, {DropOpen: true}, {KeepToolTurns: true}} {
			r := &loads{Reader: s, Bulk: s.(objects.Bulk), ahead: map[objects.ID]int{}}
			got, err := eager(t, r, h.tip.ID, o)
			if err != nil {
				t.Fatal(err)
			}
			want, err := chain(t.Context(), r, h.tip.ID, o, nil, maxScan)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: %s", seed, difference(got, want))
			}
			ahead += len(r.ahead)
		}
	}
	if ahead < 1000 || said[commit.Compress] < 10 || said[commit.Merge] < 10 {
		t.Errorf("%d blocks were loaded ahead, of histories with %v", ahead, said)
	}
}

// TestWhatIsLeftOutIsNotLoadedAhead holds what is loaded ahead against what is sent in the
// end. Calls and results are all looked at, to tell what belongs together; thoughts that
// go with a call were to be sent until then.
func TestWhatIsLeftOutIsNotLoadedAhead(t *testing.T) {
	for seed := range 20 {
		h := rapid.Custom(drawTold).Example(seed)
		h.gone = nil
		s := h.keep(t)
		r := &loads{Reader: s, Bulk: s.(objects.Bulk), ahead: map[objects.ID]int{}}
		p, err := eager(t, r, h.tip.ID, Options{})
		if err != nil {
			t.Fatal(err)
		}
		needed := map[objects.ID]bool{}
		for i := range p.Entries {
			e := &p.Entries[i]
			withCall := isTool(e.Kind) && e.Level != priority.Skip || e.Why() == "its call is left out"
			if e.Sent && e.Edit().IsZero() || withCall {
				needed[e.Content] = true
			}
			if !e.Sent && !isTool(e.Kind) && e.Op == commit.Append && e.Block != nil && e.Kind != content.KindSystem {
				t.Errorf("seed %d: entry %d is not sent, and has its block", seed, i)
			}
		}
		for id, n := range r.ahead {
			if !needed[id] {
				t.Errorf("seed %d: content %s was loaded ahead %d times, and is not sent", seed, id.Short(), n)
			}
		}
	}
}

// TestLoadingAheadHidesNoError lets what is loaded ahead fail, and then all that is
// loaded.
func TestLoadingAheadHidesNoError(t *testing.T) {
	h := rapid.Custom(drawTold).Example(1)
	s := h.keep(t)
	r := &loads{Reader: s, Bulk: s.(objects.Bulk), fail: errors.New("not now"), ahead: map[objects.ID]int{}}
	got, err := eager(t, r, h.tip.ID, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := Chain(t.Context(), s, h.tip.ID, Options{})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%v, %s", err, difference(got, want))
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	a := newAhead(ctx, r, Options{})
	if _, err := chain(ctx, r, h.tip.ID, Options{}, a, maxScan); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who has no time gets %v", err)
	}
	a.stop()
}

// TestWhatACommitClaimsAsksForNoMore begins at commits that say absurd things of the
// history before them.
func TestWhatACommitClaimsAsksForNoMore(t *testing.T) {
	h := rapid.Custom(drawTold).Example(2)
	s := h.keep(t)
	for _, c := range []commit.Commit{
		{Depth: 1<<64 - 1, Weight: commit.Weight{Sent: 1<<62 - 1}},
		{Depth: 5, Weight: commit.Weight{Sent: -5}},
		{Depth: 5, Weight: commit.Weight{Sent: 1 << 40}, Mark: objects.Hash([]byte("nowhere"))},
	} {
		a := newAhead(t.Context(), s, Options{})
		a.begin(&c)
		sum := 0
		for _, room := range a.room {
			sum += len(room)
		}
		if sum > 2*aheadMost || c.Weight.Sent < 1<<50 && a.open {
			t.Errorf("%+v asks for %d bytes", c.Weight, sum)
		}
		a.stop()
	}
}

// expecting counts how often it is told that much will be loaded.
type expecting struct {
	objects.Reader
	objects.Bulk
	told int
}

func (e *expecting) Expect(size int64) (read func(context.Context)) {
	e.told++
	return e.Bulk.Expect(size)
}

// TestBehindASummaryNothingIsExpected: who begins to load ahead at a summary would read all
// that it stands for.
func TestBehindASummaryNothingIsExpected(t *testing.T) {
	for _, behind := range []int{shortLine, shortLine + 1} {
		h := &told{}
		for i := range 60 {
			h.write(t, commit.Draft{Block: content.User(fmt.Sprint("q", i))})
		}
		h.write(t, commit.Draft{Op: commit.Compress, Block: content.Text{Of: content.KindSummary, Text: "in short"}, First: h.all[0].ID, Target: h.tip.ID})
		for i := range behind {
			h.write(t, commit.Draft{Block: content.User(fmt.Sprint("and ", i))})
		}
		s := h.keep(t)
		r := &expecting{Reader: s, Bulk: s.(objects.Bulk)}
		if _, err := eager(t, r, h.tip.ID, Options{}); err != nil {
			t.Fatal(err)
		}
		if want := behind - shortLine; r.told != want {
			t.Errorf("%d commits behind a summary: it was told %d times, want %d", behind, r.told, want)
		}
	}
}

// slowly reads what it is told of until nobody wants it any more.
type slowly struct {
	objects.Reader
	objects.Bulk
	ended bool
}

func (s *slowly) Expect(int64) (read func(context.Context)) {
	return func(ctx context.Context) { <-ctx.Done(); s.ended = true }
}

// TestNobodyWaitsForWhatIsReadAhead: the walk and the loading go on while a file is read, and
// when they are done it is not read any further.
func TestNobodyWaitsForWhatIsReadAhead(t *testing.T) {
	h := &told{}
	for i := range 60 {
		h.write(t, commit.Draft{Block: content.User(fmt.Sprint("q", i))})
	}
	s := h.keep(t)
	r := &slowly{Reader: s, Bulk: s.(objects.Bulk)}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // who waits for it waits so long
	defer cancel()
	a := newAhead(ctx, r, Options{})
	a.least, a.step = 0, 64
	p, err := chain(ctx, r, h.tip.ID, Options{}, a, maxScan)
	if err != nil || len(p.Entries) != 60 {
		t.Errorf("the prompt was not made: %v", err)
	}
	if a.stop(); !r.ended {
		t.Error("it is still being read")
	}
}
