package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tract-vcs/tract/internal/faulttest"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

// crashes is which states are tried of a trace.
type crashes struct {
	from   int // steps that were done
	random int // choices at every step
	every  int // one of so many states is tried; 0: each
	most   int // states; 0: all
}

// try opens the states, and gives how many there were and what was wrong with the
// first that were wrong.
func (c crashes) try(t testing.TB, trace *faulttest.Trace) (tried int, wrong []string) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	dir := filepath.Join(memory(t), "crash")
	left := 0 // out of what every says
	for state := range trace.Crashes(c.from, c.random, seed) {
		if left > 0 {
			left--
			continue
		}
		left = max(c.every, 1) - 1
		if err := state.Write(dir); err != nil {
			t.Fatal(err)
		}
		numbers, gone := acknowledged(t, trace, state.After)
		if err := survives(t.Context(), dir, numbers, gone); err != nil {
			wrong = append(wrong, fmt.Sprintf("seed %d: %s: %v", seed, state.What, err))
		}
		if tried++; tried == c.most || len(wrong) == 5 {
			break
		}
	}
	return tried, wrong
}

func (c crashes) mustSurvive(t testing.TB, what string, trace *faulttest.Trace) int {
	t.Helper()
	tried, wrong := c.try(t, trace)
	for _, one := range wrong {
		t.Errorf("%s%s", what, one)
	}
	return tried
}

// TestPowerFailure makes every store that a power failure can leave of one that is
// created, written, checkpointed, swept and closed: it opens, all that was acknowledged is
// there, and it can be written.
func TestPowerFailure(t *testing.T) {
	trace, _ := traced(t, nil, torture())
	if trace.Code != 0 {
		t.Fatal(trace.Output("2"))
	}
	tried := crashes{random: rounds(0, 1, 600), every: rounds(5, 3, 1)}.mustSurvive(t, "", trace)
	t.Logf("%d steps, %d states", len(trace.Steps), tried)
}

// TestPowerFailureAfterAKill kills a writer at some steps, lets another go on, and then
// the power fails: what the first left open the second must have made durable. Two places are
// tried with all that may follow: the first two kills between a meta page of the file and its
// sync, since a later frame then takes the place of those that the meta page has made invalid,
// and the first two between a frame and its sync, since the second writer acknowledges that frame.
func TestPowerFailureAfterAKill(t *testing.T) {
	whole, _ := traced(t, nil, false)
	tried, killed, unsynced, unsyncedFrames := 0, 0, 0, 0
	step, syncs := rounds(41, 41, 1), 0
	all := attempts(whole)
	for i, s := range all {
		chosen, every := i%step == 0, rounds(3, 2, 1)
		if s.Kind == faulttest.SyncDir {
			chosen = chosen || syncs%rounds(3, 3, 1) == 0
			syncs++
		}
		if endsCheckpoint(all, i) && unsynced < 2 || endsFrame(all, i) && unsyncedFrames < 2 {
			chosen, every = true, 1
		}
		if !chosen {
			continue
		}
		trace, _ := traced(t, &faulttest.Fault{At: s.Attempt}, false, "again")
		if trace.Code < 0 {
			continue // the first made fewer steps this time, and it was the second
		}
		if trace.Code > 0 {
			t.Fatalf("killed at attempt %d: the next one: %s", s.Attempt, trace.Output("2"))
		}
		from := trace.Starts[1]
		switch {
		case from > 0 && isMetaPage(trace.Steps[from-1]):
			unsynced++
		case from > 0 && isFrame(trace.Steps[from-1]):
			unsyncedFrames++
		}
		tried += crashes{from: from, random: rounds(0, 0, 20), every: every}.mustSurvive(t, fmt.Sprintf("killed at attempt %d: ", s.Attempt), trace)
		killed++
	}
	t.Logf("%d kills, %d of them before the sync of a meta page and %d before that of a frame, %d states", killed, unsynced, unsyncedFrames, tried)
	if unsynced < 2 || unsyncedFrames < 2 {
		t.Error("not enough writers were killed between a meta page and its sync, or between a frame and its sync")
	}
}

// attempts are the steps at which a fault can strike.
func attempts(trace *faulttest.Trace) []faulttest.Step {
	return slices.DeleteFunc(slices.Clone(trace.Steps), func(s faulttest.Step) bool { return s.Kind == faulttest.Say })
}

// endsCheckpoint reports whether a step is the sync of a meta page of the store.
func endsCheckpoint(all []faulttest.Step, at int) bool {
	return at > 0 && all[at].Kind == faulttest.Sync && all[at].Name == "s/"+fileName && isMetaPage(all[at-1])
}

// isMetaPage reports whether a step writes a meta page of the store.
func isMetaPage(s faulttest.Step) bool {
	return s.Kind == faulttest.Write && s.Name == "s/"+fileName && s.At <= 4096
}

// endsFrame reports whether a step is the sync of a frame of the journal.
func endsFrame(all []faulttest.Step, at int) bool {
	return at > 0 && all[at].Kind == faulttest.Sync && all[at].Name == all[at-1].Name && isFrame(all[at-1])
}

// isFrame reports whether a step writes a frame of the journal.
func isFrame(s faulttest.Step) bool {
	return s.Kind == faulttest.Write && s.Name == journalPath("s/"+fileName) && bytes.HasPrefix(s.Data, []byte(journal.Magic))
}

// numbersOfWork are the numbers at which roleCrash leaves its branches.
var numbersOfWork = map[string]int{"refs/heads/main": 14, "refs/heads/0": 3, "refs/heads/1": 3, "refs/heads/2": 3}

// TestErrorAtEveryStep lets any write, sync, rename or opening of a file fail, or write
// half of what it should. Whoever does the same again comes to the same store as if
// nothing had happened: nothing is lost, nothing is there twice. And no power failure
// takes away what was acknowledged, though the system takes for written what a failed
// sync has left: the first syncs of frames and of meta pages fail in every run, with more states.
func TestErrorAtEveryStep(t *testing.T) {
	whole, _ := traced(t, nil, false)
	faults, states, heard := 0, 0, 0
	step := rounds(61, 43, 1)
	all, checkpoints, frames := attempts(whole), 0, 0
	for n, s := range all {
		at := s.Attempt
		always, most := true, rounds(40, 40, 150)
		switch {
		case endsCheckpoint(all, n) && checkpoints < 4:
			checkpoints++
		case endsFrame(all, n) && frames < 2:
			frames++
		default:
			always, most = false, rounds(10, 10, 150)
		}
		for i, fault := range []faulttest.Fault{
			{At: at, Errno: syscall.EIO},
			{At: at, Errno: syscall.ENOSPC},
			{At: at, Last: at + 1, Errno: syscall.ENOSPC, Short: true},
			{At: at, Last: at + 2, Errno: syscall.EIO},
		} {
			if (n*4+i)%step != 0 && (i > 0 || !always) {
				continue
			}
			trace, root := traced(t, &fault, false)
			what := fmt.Sprintf("%v at attempt %d to %d, short %t: ", fault.Errno, at, fault.Last, fault.Short)
			if trace.Code != 0 {
				t.Errorf("%s%s", what, trace.Output("2"))
				continue
			}
			if err := survives(t.Context(), root, numbersOfWork, []string{"refs/tags/gone"}); err != nil {
				t.Errorf("%s%v", what, err)
			}
			if got, err := numbersIn(t.Context(), filepath.Join(root, "s")); err != nil || !maps.Equal(got, numbersOfWork) {
				t.Errorf("%s%v, %v", what, got, err)
			}
			if faults++; trace.Output("2") != "" {
				heard++
			}
			states += crashes{from: failedAt(trace), random: rounds(0, 0, 2), most: most}.mustSurvive(t, what, trace)
		}
	}
	t.Logf("%d faults, of which %d were heard of; %d states", faults, heard, states)
	if heard == 0 || checkpoints < 4 || frames < 2 {
		t.Errorf("%d faults were heard of; %d syncs of a meta page and %d of a frame were to fail", heard, checkpoints, frames)
	}
}

// failedAt is the number of steps that were done when one failed; when it is not to
// be seen, all.
func failedAt(trace *faulttest.Trace) int {
	for i, s := range trace.Steps {
		if s.Failed {
			return i
		}
	}
	return len(trace.Steps)
}

// numbersIn is the number of every branch, but for the one more of survives.
func numbersIn(ctx context.Context, path string) (map[string]int, error) {
	s, err := objects.Open(ctx, path, objects.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	list, err := s.Refs(ctx, objects.RefQuery{})
	numbers := map[string]int{}
	for _, r := range list {
		n, e := countDown(ctx, s, r.Name)
		numbers[r.Name], err = n, errors.Join(err, e)
	}
	numbers["refs/heads/main"]--
	return numbers, err
}

// without is what the engine would do if it left out some steps.
func without(trace *faulttest.Trace, out func(s *faulttest.Step) bool) *faulttest.Trace {
	c := *trace
	c.Steps = slices.Clone(c.Steps)
	for i := range c.Steps {
		if out(&c.Steps[i]) {
			c.Steps[i].Kind = faulttest.Open
		}
	}
	return &c
}

// withoutRename is what it would do if it made the files of a store where they are.
func withoutRename(trace *faulttest.Trace) *faulttest.Trace {
	c := *trace
	c.Steps = slices.Clone(c.Steps)
	for i := range c.Steps {
		switch s := &c.Steps[i]; {
		case s.Kind == faulttest.Create && strings.Contains(s.Name, newSuffix+"journal"):
			s.Name = "s/" + fileName + "-journal"
		case s.Kind == faulttest.Create && strings.Contains(s.Name, newSuffix):
			s.Name = "s/" + fileName
		case s.Kind == faulttest.Link || s.Kind == faulttest.Rename || s.Kind == faulttest.Remove:
			s.Kind = faulttest.Open
		}
	}
	return &c
}

// overwrites reports whether a step overwrites a free page, or the journal, after a purge.
func overwrites(s *faulttest.Step) bool {
	return s.Kind == faulttest.Write && strings.HasPrefix(s.Name, "s/tract.db") && len(s.Data) >= 4096 && len(bytes.Trim(s.Data, "\x00")) == 0
}

// TestControlOfPowerFailure: an engine that leaves out any kind of its syncs, or makes
// its files in their places, is found out.
func TestControlOfPowerFailure(t *testing.T) {
	trace, _ := traced(t, nil, false)
	begun := slices.IndexFunc(trace.Steps, func(s faulttest.Step) bool { return s.Kind == faulttest.Say })
	syncOf := func(name string) func(*faulttest.Step) bool {
		return func(s *faulttest.Step) bool { return s.Kind == faulttest.Sync && s.Name == name }
	}
	for what, bad := range map[string]struct {
		trace *faulttest.Trace
		from  int
	}{
		"no rename":           {withoutRename(trace), 0},
		"no sync of names":    {without(trace, func(s *faulttest.Step) bool { return s.Kind == faulttest.SyncDir }), 0},
		"no sync of data":     {without(trace, func(s *faulttest.Step) bool { return s.Kind == faulttest.Sync }), 0},
		"none of the journal": {without(trace, syncOf("s/tract.db-journal")), begun},
		"none of the file":    {without(trace, syncOf("s/tract.db")), begun},
		"no overwriting":      {without(trace, overwrites), begun},
	} {
		tried, wrong := crashes{from: bad.from}.try(t, bad.trace)
		if len(wrong) == 0 {
			t.Errorf("%s: %d states, and none is wrong", what, tried)
			continue
		}
		t.Logf("%s: state %d: %.300s", what, tried, wrong[0])
	}
}
