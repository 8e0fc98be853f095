package bolt

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestWalkReadsOnlyWhatIsNeeded walks a history whose newest commits are in the journal: a caller
// that stops there has read almost nothing of the file, and one that continues gets everything.
func TestWalkReadsOnlyWhatIsNeeded(t *testing.T) {
	s, _ := fresh(t)
	var line []objects.ID
	for i := range 100 {
		var parents []objects.ID
		if i > 0 {
			parents = line[i-1 : i : i]
		}
		o := objects.New(objects.KindCommit, parents, nil, fmt.Append(nil, i))
		if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{o}}); err != nil {
			t.Fatal(err)
		}
		line = append(line, o.ID)
	}
	in := inner(t, s)
	c, first := newChainReader(line[99], 0), new(chainBatch)
	if err := in.view(t.Context(), "read", func(l *snapshot) error { return c.read(l, first) }); err != nil {
		t.Fatal(err)
	}
	if len(first.list) != firstLoose {
		t.Errorf("the first batch has %d commits, want %d", len(first.list), firstLoose)
	}
	var got []objects.ID
	for run, err := range in.ChainRuns(t.Context(), line[99], 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range run.Objects {
			got = append(got, o.ID)
		}
	}
	if slices.Reverse(got); !slices.Equal(got, line) {
		t.Errorf("the line has %d commits of %d", len(got), len(line))
	}
}
