package tract_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// TestContinueInsistsOnItsPlace adds messages at one commit: on a new branch, on the
// one that stands there, and not on one that has moved.
func TestContinueInsistsOnItsPlace(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	say := func(role content.Role, blocks ...content.Block) content.Message {
		return content.Message{Role: role, Blocks: blocks}
	}
	first := must(main.AppendMessages(t.Context(), objects.ID{}, []content.Message{
		say(content.RoleUser, content.User("Q1")), say(content.RoleUser, content.User(""), content.User("Q2")),
	}, tract.AppendOptions{}))(t)
	if len(first) != 2 {
		t.Fatalf("%d commits, want 2: what is empty is left out", len(first))
	}
	p := must(repo.Compile(t.Context(), "main", tract.CompileOptions{}))(t)
	if len(p.Messages) != 2 {
		t.Errorf("%d messages, want 2: they are not joined", len(p.Messages))
	}
	if ids := must(main.AppendMessages(t.Context(), first[1], nil, tract.AppendOptions{}))(t); ids != nil {
		t.Errorf("nothing became %v", ids)
	}
	if ids := must(repo.Branch("fork").AppendMessages(t.Context(), first[0], nil, tract.AppendOptions{}))(t); ids != nil || must(repo.Branch("fork").Tip(t.Context()))(t) != first[0] {
		t.Errorf("the fork has %v", ids)
	}
	_, err := main.AppendMessages(t.Context(), first[0], []content.Message{say(content.RoleUser, content.User("Q3"))}, tract.AppendOptions{})
	var moved *tract.ConflictError
	if !errors.As(err, &moved) || moved.Expected != first[0] || moved.Actual != first[1] {
		t.Errorf("a branch that stands elsewhere gives %v", err)
	}
	if _, err := main.AppendMessages(t.Context(), objects.ID{9}, nil, tract.AppendOptions{}); !errors.As(err, &moved) {
		t.Errorf("a commit that is not there gives %v", err)
	}
	if _, err := repo.Branch("..").AppendMessages(t.Context(), objects.ID{}, nil, tract.AppendOptions{}); err == nil {
		t.Error("a name that is none was taken")
	}
	var kinds []string
	for c, err := range repo.Log(t.Context(), "main", tract.LogOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, c.Block.String())
	}
	if !slices.Equal(kinds, []string{"Q2", "Q1"}) {
		t.Errorf("main has %q", kinds)
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

// TestContinueThatAnotherWriterOvertakes: a batch that was written although the store does
// not know so is no conflict when another writer has gone on from it, and is there once.
func TestContinueThatAnotherWriterOvertakes(t *testing.T) {
	store := &overtaken{Store: objects.Memory()}
	repo := repoOf(t, store)
	main := repo.Branch("main")
	store.other = func() { must(main.AppendUser(t.Context(), "more"))(t) }
	messages := []content.Message{{Role: content.RoleUser, Blocks: []content.Block{content.User("words")}}}
	ids, err := main.AppendMessages(t.Context(), objects.ID{}, messages, tract.AppendOptions{})
	if have := branches(t, repo)["main"]; err != nil || len(ids) != 1 || len(have) != 2 || have[0].ID != ids[0] {
		t.Errorf("%d commits, %v, %v", len(have), ids, err)
	}
}
