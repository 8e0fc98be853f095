package tract_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// TestRecordRequiresItsTip records messages at a given commit: on a new branch, on a branch that is
// at the commit, and not on one that has moved.
func TestRecordRequiresItsTip(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	record := func(branch string, from objects.ID, blocks ...content.Block) (*tract.Recorded, error) {
		return repo.Branch(branch).Record(t.Context(), tract.Recording{From: from, Messages: []content.Message{{Role: content.RoleUser, Blocks: blocks}}}, tract.AppendOptions{})
	}
	first := must(record("main", objects.ID{}, content.User("Q1"), content.User(""), content.User("Q2")))(t)
	if len(first.Request) != 2 || first.Tip != first.Request[1] {
		t.Fatalf("recorded %+v, want 2 commits: what is empty is left out", first)
	}
	fork := must(record("fork", first.Request[0]))(t)
	if len(fork.Request) > 0 || must(repo.Branch("fork").Tip(t.Context()))(t) != first.Request[0] {
		t.Errorf("the fork has %+v", fork)
	}
	_, err := record("main", first.Request[0], content.User("Q3"))
	var moved *tract.ConflictError
	if !errors.As(err, &moved) || moved.Expected != first.Request[0] || moved.Actual != first.Tip {
		t.Errorf("a branch that stands elsewhere gives %v", err)
	}
	if _, err := record("main", objects.ID{9}); !errors.As(err, &moved) {
		t.Errorf("a commit that is not there gives %v", err)
	}
	if _, err := record("..", objects.ID{}); err == nil {
		t.Error("a name that is none was taken")
	}
	edits := []tract.RecordedEdit{{Commit: first.Request[0], Block: content.User("Q1 in other words")}, {Commit: first.Request[1]}}
	done := must(main.Record(t.Context(), tract.Recording{From: first.Tip, Edits: edits, Note: "refused"}, tract.AppendOptions{}))(t)
	if done.Edits != 2 {
		t.Errorf("recorded %+v", done)
	}
	p := must(repo.Compile(t.Context(), "main", tract.CompileOptions{}))(t)
	if len(p.Messages) != 1 || len(p.Messages[0].Blocks) != 1 || p.Messages[0].Blocks[0].String() != "Q1 in other words" {
		t.Errorf("the prompt is %v", p.Messages)
	}
}

// overtaken is a store whose first batch is written, its outcome unknown, and then
// followed by what another writer adds.
type overtaken struct {
	objects.Store
	other func()
}

// Unwrap gives the store that does the work; see objects.As.
func (s *overtaken) Unwrap() objects.Store { return s.Store }

func (s *overtaken) Apply(ctx context.Context, b objects.Batch) error {
	err := s.Store.Apply(ctx, b)
	if other := s.other; err == nil && other != nil {
		s.other = nil
		other()
		err = objects.Unknown(errors.New("the disk went away"))
	}
	return err
}

// TestRecordThatAnotherWriterOvertakes: a batch that was written although the store does
// not know so is no conflict when another writer has gone on from it, and is there once.
func TestRecordThatAnotherWriterOvertakes(t *testing.T) {
	store := &overtaken{Store: objects.Memory()}
	repo := repoOf(t, store)
	main := repo.Branch("main")
	store.other = func() { must(main.AppendUser(t.Context(), "more"))(t) }
	messages := []content.Message{{Role: content.RoleUser, Blocks: []content.Block{content.User("words")}}}
	done, err := main.Record(t.Context(), tract.Recording{Messages: messages}, tract.AppendOptions{})
	if have := branches(t, repo)["main"]; err != nil || len(done.Request) != 1 || len(have) != 2 || have[0].ID != done.Request[0] {
		t.Errorf("%d commits, %+v, %v", len(have), done, err)
	}
}
