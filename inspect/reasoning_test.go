package inspect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
)

// TestReasoningIsYieldedOnceNewestFirst reads two branches that share a history.
func TestReasoningIsYieldedOnceNewestFirst(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	repo := open(t, tract.OpenOptions{Now: func() time.Time { now = now.Add(time.Second); return now }})
	main := repo.Branch("main")
	two := says(think("aaaa"), call("c1"), think("bbbbbbbbbbbb"), call("c2"))
	must(main.Ask(t.Context(), two, "One", tract.AskOptions{}))(t)
	must(main.Append(t.Context(), []content.Block{result("c1"), result("c2")}, tract.AppendOptions{}))(t)
	fork := must(main.Fork(t.Context(), "fork", "main"))(t)
	must(main.Generate(t.Context(), says(think("cc"), content.Assistant("x")), tract.AskOptions{}))(t)
	must(fork.Generate(t.Context(), says(think("dd"), content.Assistant("y")), tract.AskOptions{}))(t)
	must(main.Ask(t.Context(), says(think("ee"), content.Assistant("z")), "Two", tract.AskOptions{}))(t)
	var got []string
	for b, err := range inspect.Reasoning(t.Context(), repo, inspect.ReasoningOptions{Turns: true}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s@%s/%d:%d", b.Block.Text, b.Origin().Session, b.Turn, b.Reported))
	}
	if want := "ee@main/2:2 dd@fork/1:2 cc@main/1:2 bbbbbbbbbbbb@main/1:1 aaaa@main/1:1"; strings.Join(got, " ") != want {
		t.Errorf("blocks are %v\nwant %s", got, want)
	}
	got = nil
	for b, err := range inspect.Reasoning(t.Context(), repo, inspect.ReasoningOptions{Revs: []string{"fork"}}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b.Block.Text)
	}
	if strings.Join(got, " ") != "dd bbbbbbbbbbbb aaaa" {
		t.Errorf("blocks of fork are %v", got)
	}
	for _, err := range inspect.Reasoning(t.Context(), repo, inspect.ReasoningOptions{Revs: []string{"nope"}}) {
		if !errors.Is(err, objects.ErrNotFound) {
			t.Errorf("of a branch that is not there: %v", err)
		}
	}
}

// TestReasoningOfALostResponseIsFound: what a rescue ref keeps was thought and paid.
func TestReasoningOfALostResponseIsFound(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	m := says(think("lost"), content.Assistant("x"))
	m.between = func() {
		if _, err := main.AppendUser(t.Context(), "meanwhile"); err != nil {
			t.Error(err)
		}
	}
	var moved *tract.ConflictError
	if _, err := main.Ask(t.Context(), m, "Q", tract.AskOptions{}); !errors.As(err, &moved) {
		t.Fatal(err)
	}
	n := 0
	for b, err := range inspect.Reasoning(t.Context(), repo, inspect.ReasoningOptions{}) {
		if err != nil || b.Block.Text != "lost" {
			t.Errorf("%v, %v", b, err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d blocks", n)
	}
}
