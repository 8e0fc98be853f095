package tract_test

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/internal/secrets/secretstest"
)

// TestImportMasksSecretsInEveryField puts a secret into every field of a source: it is masked and
// reported once, in order, and not reported again by a second import.
func TestImportMasksSecretsInEveryField(t *testing.T) {
	planted := secretstest.Plant(21)
	with := map[int]secretstest.Planted{0: planted[2], 1: planted[15], 127: planted[3], 128: planted[5], 700: planted[2], 1199: planted[15]}
	parts := func(i int) (list []tract.ImportedPart) {
		text := strconv.Itoa(i) + " words"
		if p, ok := with[i]; ok {
			text = strconv.Itoa(i) + " " + p.Text()
		}
		list = append(list, tract.ImportedPart{ID: strconv.Itoa(i), Block: content.User(text)})
		if i%10 == 0 { // and what is to be passed over
			list = slices.Insert(list, 0, tract.ImportedPart{ID: strconv.Itoa(i) + "-empty", Block: content.User("")})
		}
		return list
	}
	source := func(n int) iter.Seq2[tract.ImportedMessage, error] {
		return func(yield func(tract.ImportedMessage, error) bool) {
			for i := range n {
				if !yield(tract.ImportedMessage{Branch: "b", Parts: parts(i)}, nil) {
					return
				}
			}
		}
	}
	for _, first := range []int{0, 1, 100, 128, 650, 1200} {
		var told []string
		repo := memory(t, tract.OpenOptions{OnSecrets: func(found []tract.Secret) {
			for _, f := range found {
				if !f.Masked {
					t.Errorf("%+v is stored as it came", f)
				}
				told = append(told, f.Rule)
			}
		}})
		for _, n := range []int{first, 1200} {
			if _, err := repo.Import(t.Context(), source(n), tract.ImportOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(told, rulesIn(with)) {
			t.Errorf("after %d: told %q", first, told)
		}
		list := branches(t, repo)["b"]
		if len(list) != 1200 {
			t.Fatalf("after %d: %d commits", first, len(list))
		}
		for i, p := range with {
			text := list[i].Block.(content.Text).Text
			if strings.Contains(text, p.Secret) || text != secrets.Mask(strconv.Itoa(i)+" "+p.Text()) {
				t.Errorf("after %d: commit %d says %q", first, i, text)
			}
		}
	}
}

// TestDryRunOfAnImportLooksForNoSecrets checks that a dry run does not search for secrets: nothing
// is stored, and the search takes longer than the rest.
func TestDryRunOfAnImportLooksForNoSecrets(t *testing.T) {
	repo := memory(t, tract.OpenOptions{OnSecrets: func(found []tract.Secret) { t.Errorf("a plan tells of %+v", found) }})
	done, err := repo.Import(t.Context(), inOrder(one("b", "1", secretstest.Plant(1)[0].Text())), tract.ImportOptions{DryRun: true})
	if err != nil || len(done) != 1 || done[0].Added != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
}

// rulesIn is what is found in some texts, in their order.
func rulesIn(with map[int]secretstest.Planted) (list []string) {
	var order []int
	for i := range with {
		order = append(order, i)
	}
	slices.Sort(order)
	for _, i := range order {
		for _, f := range secrets.Find(with[i].Text()) {
			list = append(list, f.Rule)
		}
	}
	return list
}
