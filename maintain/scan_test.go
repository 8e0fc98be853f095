package maintain_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/secrets/secretstest"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
)

func scan(t *testing.T, repo *tract.Repo, s maintain.ScanOptions) (list []maintain.Leak) {
	t.Helper()
	for l, err := range maintain.Scan(t.Context(), repo, s) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, l)
	}
	return list
}

// TestScanFindsSecretsInEveryField plants a secret of every form wherever words go,
// unmasked, and deletes the branch: each is found in each place, and no finding shows it.
func TestScanFindsSecretsInEveryField(t *testing.T) {
	for _, p := range secretstest.Plant(21) {
		repo := open(t, tract.OpenOptions{Settings: map[string]string{"secrets.mask": "off"}})
		tellEverything(t, repo, "main", p.Text())
		if err := repo.DeleteRefs(t.Context(), []string{"refs/heads/main"}); err != nil {
			t.Fatal(err)
		}
		places := map[string]int{}
		for _, l := range scan(t, repo, maintain.ScanOptions{}) {
			if l.Rule != p.Rule || l.Commit == nil || l.Object.IsZero() || l.Line < 1 {
				t.Errorf("%s: found %+v", p.Rule, l)
			}
			if strings.Contains(l.Excerpt, p.Secret) {
				t.Errorf("%s: shown in %q", p.Rule, l.Excerpt)
			}
			at := l.Where
			if at == "content" {
				at = l.Commit.Op.String() + " " + l.Commit.Kind.String()
			}
			places[at]++
		}
		want := []string{
			"annotate note", "append assistant", "append file", "append native", "append note", "append reasoning", "append system",
			"append tool-call", "append tool-result", "append user", "compress summary", "edit user", "label", "meta note", "tools",
		}
		if got := slices.Sorted(maps.Keys(places)); !slices.Equal(got, want) {
			t.Errorf("%s: found in %v\nwant %v", p.Rule, got, want)
		}
	}
}

// TestScanReportsSealedAndOpen checks that a finding states whether it is under a seal, and whether
// an open tool loop needs the seal.
func TestScanReportsSealedAndOpen(t *testing.T) {
	key := secretstest.Plant(22)[2].Secret
	repo := open(t)
	b := repo.Branch("main")
	m := says(think("first "+key), call("c1")).then(think("then "+key), content.Assistant("Done.")).then(think("at last "+key), call("c2"))
	must(b.Ask(t.Context(), m, "Do it.", tract.AskOptions{}))(t)
	must(b.Append(t.Context(), []content.Block{result("c1")}, tract.AppendOptions{}))(t)
	list := scan(t, repo, maintain.ScanOptions{Rev: "main"})
	if len(list) != 1 || !list[0].Sealed || !list[0].Open {
		t.Errorf("in the loop: %+v", list)
	}
	must(b.Generate(t.Context(), m, tract.AskOptions{}))(t)
	must(b.Ask(t.Context(), m, "Again.", tract.AskOptions{}))(t)
	list = scan(t, repo, maintain.ScanOptions{Rev: "main", Rules: []string{"anthropic"}})
	if len(list) != 3 || !list[0].Open || list[1].Open || list[2].Open || !list[2].Sealed {
		t.Errorf("after it: %+v", list)
	}
	if list = scan(t, repo, maintain.ScanOptions{Rules: []string{"github"}}); len(list) > 0 {
		t.Errorf("of another rule: %+v", list)
	}
}

// TestScanReadsTranscriptsOfSummaries checks that secrets are found in the transcript that the model
// received when it wrote a summary.
func TestScanReadsTranscriptsOfSummaries(t *testing.T) {
	key := secretstest.Plant(23)[15].Secret
	repo := open(t, tract.OpenOptions{Settings: map[string]string{"secrets.mask": "off"}})
	b := repo.Branch("main")
	must(b.AppendUser(t.Context(), "the token is "+key))(t)
	must(b.Append(t.Context(), []content.Block{content.Assistant("Thanks.")}, tract.AppendOptions{}))(t)
	must(b.AppendUser(t.Context(), "and now?"))(t)
	must(summaryID(b.Compress(t.Context(), "", tract.CompressOptions{Client: says(content.Assistant("They gave a token."))})))(t)
	list := scan(t, repo, maintain.ScanOptions{Rev: "main"})
	if len(list) != 2 || !strings.Contains(list[0].Excerpt, "[user]") && list[0].Line < 2 {
		t.Errorf("%+v", list)
	}
}

// TestScanFindsSecretsInMetadata checks that secrets are found in what a provider, another program
// or the request state about a response.
func TestScanFindsSecretsInMetadata(t *testing.T) {
	key := secretstest.Plant(24)[15].Secret
	reply := func(b *tract.Branch, r *llm.Response) {
		r.Blocks = []content.Block{content.Assistant("Blue.")}
		must(b.AppendResponse(t.Context(), r, tract.AppendOptions{}))(t)
	}
	for name, say := range map[string]func(repo *tract.Repo, b *tract.Branch){
		"a finish reason": func(_ *tract.Repo, b *tract.Branch) { reply(b, &llm.Response{Head: llm.Head{Finish: "error: " + key}}) },
		"usage": func(_ *tract.Repo, b *tract.Branch) {
			reply(b, &llm.Response{Head: llm.Head{Usage: content.Usage{Raw: []byte(inJSON(t, key))}}})
		},
		"a title that was imported": func(repo *tract.Repo, _ *tract.Branch) {
			must(repo.Import(t.Context(), func(yield func(tract.ImportedMessage, error) bool) {
				yield(tract.ImportedMessage{
					Branch: "brought", Origin: commit.Origin{Importer: "test", Original: map[string]string{"title": key}},
					Parts: []tract.ImportedPart{{ID: "1", Block: content.User("Colour?")}},
				}, nil)
			}, tract.ImportOptions{}))(t)
		},
		"a request": func(_ *tract.Repo, b *tract.Branch) {
			x := must(b.Prepare(t.Context(), plainTarget{}, tract.PrepareOptions{}))(t)
			x.Manifest.RequestSettings["request.extra"] = inJSON(t, key)
			must(b.Accept(t.Context(), x, strings.NewReader("Blue.")))(t)
		},
	} {
		repo := open(t, tract.OpenOptions{Settings: map[string]string{"secrets.mask": "off"}})
		b := repo.Branch("main")
		must(b.AppendUser(t.Context(), "Colour?"))(t)
		say(repo, b)
		where := "origin"
		if name == "a request" {
			where = "request"
		}
		if list := scan(t, repo, maintain.ScanOptions{}); len(list) != 1 || list[0].Where != where {
			t.Errorf("%s: found %+v", name, list)
		}
	}
}

// logReader is a store that counts its reads, and the reads of its whole ref log at once.
type logReader struct {
	objects.Store
	gets, wholeLogs int
}

func (s *logReader) Get(ctx context.Context, ids []objects.ID) iter.Seq2[objects.Object, error] {
	s.gets++
	return s.Store.Get(ctx, ids)
}

func (s *logReader) Log(ctx context.Context, name string, before uint64, limit int) ([]objects.LogEntry, error) {
	if limit == 0 {
		s.wholeLogs++
	}
	return s.Store.Log(ctx, name, before, limit)
}

// TestScanOfManyBranches checks that a scan reads the ref log in pages and the tips of all branches
// at once, and finds the secrets in their names and descriptions.
func TestScanOfManyBranches(t *testing.T) {
	ctx := t.Context()
	store := &logReader{}
	objects.Register("log-reader", func(ctx context.Context, _ string, o objects.Options) (_ objects.Store, err error) {
		store.Store, err = objects.Open(ctx, "mem:", o)
		return store, err
	})
	repo := must(tract.Open(ctx, "log-reader:x", tract.OpenOptions{Create: true, Settings: map[string]string{"secrets.mask": "off"}}))(t)
	key := secretstest.Plant(22)[2].Secret
	const branches = 100
	for n := range branches {
		name := fmt.Sprint("b", n)
		if n == 0 {
			name = "key/" + key
		}
		b := repo.Branch(name)
		must(b.AppendUser(ctx, "Hello."))(t)
		if n == 1 {
			if err := b.Describe(ctx, "with "+key); err != nil {
				t.Fatal(err)
			}
			must(b.AppendUser(ctx, "And more."))(t)
		}
	}
	store.gets, store.wholeLogs = 0, 0
	var where []string
	for _, l := range scan(t, repo, maintain.ScanOptions{}) {
		where = append(where, l.Where)
	}
	if want := []string{"branch name", "description"}; !slices.Equal(where, want) {
		t.Errorf("found secrets in %q, want %q", where, want)
	}
	if store.wholeLogs > 0 || store.gets > branches/2 {
		t.Errorf("%d reads, %d of the whole ref log", store.gets, store.wholeLogs)
	}
}
