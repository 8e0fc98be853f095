package tract_test

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/objectstest"
)

// TestImportThatCannotBeWritten: whichever batch fails, before or after it was
// written, the branch has a beginning of the source, and the next import brings the rest,
// nothing twice.
func TestImportThatCannotBeWritten(t *testing.T) {
	const parts = 40
	text := strings.Repeat("words of a long message. ", 20_000) // half a megabyte: several batches
	var list iter.Seq2[tract.ImportedMessage, error] = func(yield func(tract.ImportedMessage, error) bool) {
		for i := range parts {
			n := strconv.Itoa(i)
			if !yield(tract.ImportedMessage{Branch: "b", Parts: []tract.ImportedPart{{ID: n, Block: content.User(n + text)}}}, nil) {
				return
			}
		}
	}
	store := objects.Memory()
	scheme := ""
	objects.Register("failing", func(context.Context, string, objects.Options) (objects.Store, error) {
		nth, _ := strconv.Atoi(scheme[1:])
		when := objectstest.Before
		if scheme[0] == 'a' {
			when = objectstest.After
		}
		return objectstest.Faulty(store, objectstest.Plan{objectstest.Apply: {nth: when}}), nil
	})
	for _, scheme = range []string{"b1", "b2", "b4", "a1", "a2", "a4"} {
		store = objects.Memory()
		repo, err := tract.Open(t.Context(), "failing:", tract.OpenOptions{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		done, err := repo.Import(t.Context(), list, tract.ImportOptions{})
		have := branches(t, repo)["b"]
		if !errors.Is(err, objectstest.ErrFault) || len(have) == parts || done[0].Added > len(have) {
			t.Errorf("%s: %+v, %d commits, %v", scheme, done, len(have), err)
		}
		done, err = repo.Import(t.Context(), list, tract.ImportOptions{})
		again := branches(t, repo)["b"]
		if err != nil || len(again) != parts || done[0].Added != parts-len(have) {
			t.Fatalf("%s: the second import gives %+v, %d commits, %v", scheme, done, len(again), err)
		}
		for i, c := range again {
			if text, _ := c.Block.(content.Text); c.Block != nil && !strings.HasPrefix(text.Text, strconv.Itoa(i)+"words") {
				t.Errorf("%s: commit %d says %.20q", scheme, i, text.Text)
			}
		}
	}
}

// TestAnImportIsOneOperation, however many batches it takes: undo takes all of it back,
// and a branch that begins within another finds its place in a batch before.
func TestAnImportIsOneOperation(t *testing.T) {
	ctx := t.Context()
	text := strings.Repeat("words of a long message. ", 20_000)
	var list iter.Seq2[tract.ImportedMessage, error] = func(yield func(tract.ImportedMessage, error) bool) {
		for i := range 20 {
			f := tract.ImportedMessage{Branch: "b", Parts: []tract.ImportedPart{{ID: strconv.Itoa(i), Block: content.User(strconv.Itoa(i) + text)}}}
			if i == 15 {
				f.Branch, f.From = "fork", "7"
			}
			if !yield(f, nil) {
				return
			}
		}
	}
	repo := memory(t)
	if _, err := repo.Branch("mine").AppendUser(ctx, "before"); err != nil {
		t.Fatal(err)
	}
	done, err := repo.Import(ctx, list, tract.ImportOptions{})
	if err != nil || len(done) != 2 || done[0].Added != 19 || done[1].Added != 1 {
		t.Fatal(done, err)
	}
	all := branches(t, repo)
	if len(all["fork"]) != 9 || all["fork"][7].ID != all["b"][7].ID {
		t.Errorf("the fork has %d commits", len(all["fork"]))
	}
	if entries, err := repo.Store().Log(ctx, "refs/heads/b", 0, 0); err != nil || len(entries) < 3 {
		t.Fatalf("it took %d batches, %v: the test wants several", len(entries), err)
	}
	if _, err := repo.Undo(ctx, tract.UndoOptions{}); err != nil {
		t.Fatal(err)
	}
	if all = branches(t, repo); len(all) != 1 || len(all["mine"]) != 1 {
		t.Errorf("after an undo there are %d branches", len(all))
	}
	if again, err := repo.Import(ctx, list, tract.ImportOptions{}); err != nil || again[0].Added != 19 {
		t.Errorf("once more: %+v, %v", again, err)
	}
}
