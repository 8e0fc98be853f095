package tract

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/secrets"
	"github.com/tract-vcs/tract/secrets/secretstest"
)

// TestHeadersAfterAnImport: the tips of all batches are remembered, and are what the store
// has, although the memory that they were made in is used again.
func TestHeadersAfterAnImport(t *testing.T) {
	ctx := t.Context()
	repo, err := Open(ctx, "mem:", Create())
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("words of a long message. ", 40_000) // two or three are a batch
	list := []Foreign{{Branch: "a", Parts: []ForeignPart{{ID: "a0", Block: content.User("a0")}, {ID: "a1", Block: content.User("a1")}}}}
	for i := range 24 {
		list = append(list, Foreign{Branch: "b", Parts: []ForeignPart{{ID: strconv.Itoa(i), Block: content.User(strconv.Itoa(i) + text)}}})
	}
	for _, n := range []int{1, len(list)} { // and of a branch that was there
		if n > 1 {
			list[0].Parts = append(list[0].Parts, ForeignPart{ID: "a2", Block: content.User("a2")})
		}
		if _, err := repo.Import(ctx, func(yield func(Foreign, error) bool) {
			for _, f := range list[:n] {
				if !yield(f, nil) {
					return
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	for id, have := range repo.headers.byID {
		want, err := commit.Read(ctx, repo.store, id)
		if err != nil {
			t.Fatal(err)
		}
		if seen++; have.ID != id || !slices.Equal(have.Parents, want.Parents) || have.Depth != want.Depth || have.Key != want.Key || have.Size != want.Size {
			t.Errorf("%s is remembered as %+v, the store has %+v", id.Short(), have, want)
		}
	}
	if seen < 6 {
		t.Errorf("%d headers are remembered", seen)
	}
}

// TestAPlanLooksForNoSecrets: what is only planned is not stored, and to look through it
// all takes longer than the rest.
func TestAPlanLooksForNoSecrets(t *testing.T) {
	repo, err := Open(t.Context(), "mem:", Create())
	if err != nil {
		t.Fatal(err)
	}
	c, err := repo.call(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &importing{repo: repo, call: c, dry: true, branches: map[string]*growing{}, writer: c.writer()}
	m.begin()
	m.at = map[string]objects.ID{}
	f := Foreign{Branch: "b", Parts: []ForeignPart{{ID: "1", Block: content.User(secretstest.Plant(1)[0].Text())}}}
	if err := m.add(t.Context(), &f, safe{}); err != nil {
		t.Fatal(err)
	}
	if len(m.writer.masks.found) > 0 || m.pages.grows.Load() {
		t.Error("a plan looked for secrets")
	}
}

// TestAMessageWhoseSecretIsInItsFirstPart: the parts behind it, in which nothing is found,
// come in as well. The message is on a page that is looked through ahead, as something
// was new before it.
func TestAMessageWhoseSecretIsInItsFirstPart(t *testing.T) {
	planted := secretstest.Plant(3)[2]
	told := make(chan struct{}, 2)
	repo, err := Open(t.Context(), "mem:", Create(), OnSecrets(func([]Secret) { told <- struct{}{} }))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	said := func(texts ...string) (f Foreign) {
		f.Branch = "b"
		for _, text := range texts {
			n++
			f.Parts = append(f.Parts, ForeignPart{ID: strconv.Itoa(n), Block: content.User(text)})
		}
		return f
	}
	done, err := repo.Import(t.Context(), func(yield func(Foreign, error) bool) {
		for range pageSize - 1 {
			if !yield(said("words"), nil) {
				return
			}
		}
		if !yield(said(planted.Text()), nil) {
			return
		}
		<-told // the page is full, and on its way
		_ = yield(said("words"), nil) && yield(said(planted.Text(), "more", "and more"), nil) && yield(said("the end"), nil)
	})
	if err != nil || len(done) != 1 || done[0].Added != n || n != pageSize+5 || len(told) != 1 {
		t.Fatalf("%+v, %d told, %v", done, len(told), err)
	}
	var last []string
	for c, err := range repo.Log(t.Context(), "b~5..b") {
		if err != nil {
			t.Fatal(err)
		}
		last = append(last, c.Block.String())
	}
	slices.Reverse(last)
	if want := []string{"words", secrets.Mask(planted.Text()), "more", "and more", "the end"}; !slices.Equal(last, want) {
		t.Errorf("%q, want %q", last, want)
	}
}
