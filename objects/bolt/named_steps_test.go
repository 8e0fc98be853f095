package bolt

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tract-vcs/tract/internal/faulttest"
)

// stepsOfPhases are the steps of a checkpoint, a gc, a purge and a backup, as docs/design/engine.md
// has them. A harness that does not meet one of them proves nothing about it.
var stepsOfPhases = []string{
	"commit: write journal", "commit: sync journal", "commit: write lock",
	"commit: write file", "commit: sync file", "commit: write meta page", // a checkpoint
	"gc: create new file", "gc: write new file", "gc: write meta page of new file", "gc: sync new file",
	"gc: rename file", "gc: sync dir", "gc: write lock", "gc: truncate journal",
	"purge: zero journal", "purge: sync journal", "purge: write file", "purge: write meta page", "purge: zero file", "purge: sync file",
	"backup: create new file", "backup: write new file", "backup: write meta page of new file", "backup: sync new file",
	"backup: rename file", "backup: write journal", "backup: sync journal", "backup: sync dir",
}

// stepName names what a step does.
func stepName(phase string, s *faulttest.Step) string {
	const size = 4096
	_, base, _ := strings.Cut(s.Name, "/")
	if strings.HasSuffix(base, ".tmp") { // it is written before it gets its name
		base = base[:strings.LastIndex(base, "-")]
	}
	file := map[string]string{"": "file", "-journal": "journal", "-lock": "lock", "-turn": "turn"}[strings.TrimPrefix(base, fileName)]
	if file == "" && strings.Contains(s.Name, newSuffix) {
		file = "new file"
	}
	name := phase + ": " + s.Kind.String() + " " + file
	switch isFile := file == "file" || file == "new file"; {
	case s.Kind == faulttest.SyncDir:
		return phase + ": sync dir"
	case s.Kind != faulttest.Write:
	case isFile && s.At < 2*size && file == "file":
		return phase + ": write meta page"
	case isFile && s.At < 2*size:
		return phase + ": write meta page of new file"
	case len(s.Data) >= size && len(bytes.Trim(s.Data, "\x00")) == 0:
		return phase + ": zero " + file
	}
	return name
}

// namedStep is a place in a trace: the index of the step, and its attempt.
type namedStep struct{ step, attempt int }

// namedSteps returns the steps of a trace of roleCrash by their names.
func namedSteps(trace *faulttest.Trace) map[string][]namedStep {
	named, phase := map[string][]namedStep{}, "commit"
	for i := range trace.Steps {
		s := &trace.Steps[i]
		if s.Kind != faulttest.Say {
			name := stepName(phase, s)
			named[name] = append(named[name], namedStep{i, s.Attempt})
			continue
		}
		for line := range strings.Lines(string(s.Data)) {
			if next, ok := strings.CutPrefix(strings.TrimSpace(line), "phase "); ok {
				phase = next
			}
		}
	}
	return named
}

// TestFaultAtEveryNamedStep kills a writer before the first time that it does each of stepsOfPhases, with
// TRACT_TORTURE=1 each step that has a name, and lets the last one fail: the next writer, or the same one when
// it tries again, goes on; nothing that was acknowledged is lost, or is back after it was purged.
func TestFaultAtEveryNamedStep(t *testing.T) {
	whole, _ := traced(t, nil, false)
	named := namedSteps(whole)
	for _, name := range stepsOfPhases {
		if len(named[name]) == 0 {
			t.Errorf("no step is known as %q; there are %q", name, slices.Sorted(maps.Keys(named)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		all := named[name]
		if !slices.Contains(stepsOfPhases, name) && !torture() {
			continue
		}
		trace, root := traced(t, &faulttest.Fault{At: all[0].attempt}, false, "again")
		if trace.Code > 0 {
			t.Errorf("killed before %q: the next writer: %s", name, trace.Output("2"))
		}
		numbers, gone := acknowledged(t, trace, len(trace.Steps))
		if err := survives(t.Context(), root, numbers, gone); err != nil {
			t.Errorf("killed before %q: %v", name, err)
		}
		trace, root = traced(t, &faulttest.Fault{At: all[len(all)-1].attempt, Errno: syscall.EIO}, false)
		if trace.Code != 0 {
			t.Errorf("failed to %q: %s", name, trace.Output("2"))
		}
		numbers, gone = acknowledged(t, trace, len(trace.Steps))
		if err := survives(t.Context(), root, numbers, gone); err != nil {
			t.Errorf("failed to %q: %v", name, err)
		}
		if got, err := numbersIn(t.Context(), filepath.Join(root, "s")); err != nil || !maps.Equal(got, numbersOfWork) {
			t.Errorf("failed to %q: %v, %v", name, got, err)
		}
	}
}

// TestControlOfNamedSteps leaves out one step of a checkpoint, a gc, a purge or a backup at a time: what a
// power failure makes of that is found to be wrong.
func TestControlOfNamedSteps(t *testing.T) {
	trace, _ := traced(t, nil, false)
	named := namedSteps(trace)
	for _, name := range []string{
		"commit: sync journal", "commit: sync file", "gc: sync new file", "gc: sync dir",
		"purge: zero journal", "purge: sync journal", "purge: zero file", "purge: sync file",
		"backup: sync new file", "backup: sync journal", "backup: sync dir",
	} {
		if len(named[name]) == 0 {
			t.Errorf("no step is known as %q", name)
			continue
		}
		bad := *trace
		bad.Steps = slices.Clone(trace.Steps)
		for _, one := range named[name] {
			bad.Steps[one.step].Kind = faulttest.Open
		}
		if tried, wrong := (crashes{from: named[name][0].step}).try(t, &bad); len(wrong) == 0 {
			t.Errorf("without %q: %d states, and none is wrong", name, tried)
		} else {
			t.Logf("without %q: state %d: %.200s", name, tried, wrong[0])
		}
	}
}
