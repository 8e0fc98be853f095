package refs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// talk is a history with two turns, one commit an hour, and a resolver on it.
func talk(t *testing.T) (Resolver, map[string]objects.ID) {
	t.Helper()
	s := objects.Memory()
	ids := map[string]objects.ID{}
	var tip *commit.Commit
	for i, d := range []struct {
		name  string
		block content.Block
		index int
	}{
		{"system", content.System("Be kind."), 0},
		{"question", content.User("What is the weather in Oslo?"), 0},
		{"thought", content.Reasoning{Text: "Ask the tool."}, 0},
		{"call", content.ToolCall{CallID: "toolu_01AbC", Name: "weather", Arguments: `{"city":"Oslo"}`}, 1},
		{"result", content.ToolResult{CallID: "toolu_01AbC", Text: "4 degrees"}, 0},
		{"answer", content.Assistant("Cold: 4 degrees."), 0},
		{"thanks", content.User("Thanks!"), 0},
	} {
		var old objects.ID
		if tip != nil {
			old = tip.ID
		}
		at := noon.Add(time.Duration(i-6) * time.Hour)
		commits, put, err := commit.Write(tip, commit.Draft{Block: d.block, Index: d.index, Time: at})
		if err == nil {
			tip = commits[0]
			err = s.Apply(t.Context(), objects.Batch{Put: put, Refs: []objects.RefUpdate{{Name: Heads + "main", Old: old, New: tip.ID}}, Note: objects.Note{Time: at}})
		}
		if err != nil {
			t.Fatal(err)
		}
		ids[d.name] = tip.ID
	}
	err := s.Apply(t.Context(), objects.Batch{Refs: []objects.RefUpdate{
		{Name: Tags + "v1", New: ids["answer"]}, {Name: Heads + "side/branch", New: ids["question"]}, {Name: Rescued + "main/t1", New: ids["thought"]},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return Resolver{Store: s, Head: "main", Now: func() time.Time { return noon }}, ids
}

func TestRevisions(t *testing.T) {
	r, ids := talk(t)
	for rev, want := range map[string]string{
		"HEAD": "thanks", "@": "thanks", "main": "thanks", "refs/heads/main": "thanks", "heads/main": "thanks",
		"v1": "answer", "tags/v1": "answer", "side/branch": "question", "rescued/main/t1": "thought",
		"HEAD~1": "answer", "HEAD~": "answer", "HEAD^": "answer", "main~2": "result", "v1^^": "call", "HEAD~0": "thanks", "@~1^": "result",
		"HEAD^{turn}": "thanks", "v1^{turn}": "question", "toolu_01AbC": "call", "toolu_01AbC^{message}": "thought", "toolu_01AbC^{message}~1": "question",
		"main@{0}": "thanks", "main@{1}": "answer", "@{6}": "system", "HEAD@{2}": "result",
		"main@{2026-11-21T10:30}": "result", "main@{90m}": "result", "@{2 hours ago}": "result", "main@{now}": "thanks",
		":/degrees": "answer", ":/4 degrees": "answer", ":/Oslo?": "question", ":/tool": "thought",
	} {
		if got, err := r.Resolve(t.Context(), rev); got != ids[want] || err != nil {
			t.Errorf("%s: %v, %v; want %s", rev, got.Short(), err, want)
		}
	}
	for name, id := range ids {
		for _, digits := range []string{id.String(), strings.ToUpper(id.String()[:17]), id.String()[:12]} {
			if got, err := r.Resolve(t.Context(), digits); got != id || err != nil {
				t.Errorf("%s, the digits of %s: %v, %v", digits, name, got.Short(), err)
			}
		}
	}
}

func TestUnknownRevisions(t *testing.T) {
	r, _ := talk(t)
	for rev, why := range map[string]string{
		"nope": "no such branch", "HEAD~7": "only 6 commits come before it", "main@{9}": "moved only 7 times", "main@{2020-01-01}": "the ref log begins at",
		"main@{soon}": "want a date", "HEAD^{x}": "want ^, ^2, ^{message} or ^{turn}", "HEAD~x": "not a number", "main~3^{turn}~9": "only", "HEAD~6^{turn}": "no user message",
		":/unsaid": "no commit contains that text", ":/": "want text", "refs/heads/empty": "no commits yet", "deadbeef": "no such branch", "": "no such branch",
	} {
		_, err := r.Resolve(t.Context(), rev)
		if unknown := (*UnknownError)(nil); !errors.As(err, &unknown) || !errors.Is(err, objects.ErrNotFound) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want an UnknownError that contains %q", rev, err, why)
		}
	}
	var unknown *UnknownError
	if _, err := r.Resolve(t.Context(), "mian"); !errors.As(err, &unknown) || unknown.Nearest != "main" {
		t.Errorf("the nearest name to mian: %v", err)
	}
	r.Head = ""
	if _, err := r.Resolve(t.Context(), "HEAD~1"); !errors.As(err, &unknown) {
		t.Errorf("HEAD without a HEAD: %v", err)
	}
}

func TestNoneNamesTheMissingRef(t *testing.T) {
	for ref, want := range map[string]string{
		"refs/heads/a/b": `revision "a/b": there is no branch of that name`, "refs/tags/v1": `revision "v1": there is no tag of that name`,
		"refs/rescued/main/1": `revision "main/1": there is no rescued response of that name`, "refs/x/y": `revision "refs/x/y": there is no ref of that name`,
	} {
		if err := None(ref); err.Error() != want || !errors.Is(err, objects.ErrNotFound) {
			t.Errorf("%s: %v, want %s", ref, err, want)
		}
	}
}

func TestAmbiguousDigitsListTheCandidates(t *testing.T) {
	r, _ := talk(t)
	seen := map[string]objects.ID{}
	for i := range 100_000 {
		c, put, err := commit.Write(nil, commit.Draft{Block: content.User("x"), Time: time.UnixMilli(int64(i))})
		if err != nil {
			t.Fatal(err)
		}
		digits := c[0].ID.String()[:5]
		if _, twice := seen[digits]; !twice {
			seen[digits] = c[0].ID
			if err := r.Store.(objects.Store).Apply(t.Context(), objects.Batch{Put: put}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := r.Store.(objects.Store).Apply(t.Context(), objects.Batch{Put: put}); err != nil {
			t.Fatal(err)
		}
		_, err = r.Resolve(t.Context(), digits)
		var ambiguous *AmbiguousError
		if !errors.As(err, &ambiguous) || len(ambiguous.Candidates) != 2 || !strings.Contains(err.Error(), c[0].ID.String()[:12]) {
			t.Errorf("%s: %v", digits, err)
		}
		return
	}
	t.Fatal("no two ids began alike")
}

func TestRefTakesPrecedenceOverDigits(t *testing.T) {
	r, ids := talk(t)
	name := ids["answer"].String()[:8]
	err := r.Store.(objects.Store).Apply(t.Context(), objects.Batch{Refs: []objects.RefUpdate{{Name: Heads + name, New: ids["question"]}}})
	if got, resolveErr := r.Resolve(t.Context(), name); err != nil || got != ids["question"] {
		t.Errorf("%s is %v, %v, %v; want the branch", name, got, err, resolveErr)
	}
}

func TestRange(t *testing.T) {
	r, ids := talk(t)
	for spec, want := range map[string][2]string{
		"v1..HEAD": {"answer", "thanks"}, "v1..": {"answer", "thanks"}, "..v1": {"thanks", "answer"}, "main~3": {"", "call"},
	} {
		from, to, err := r.Range(t.Context(), spec)
		if err != nil || from != ids[want[0]] || to != ids[want[1]] {
			t.Errorf("%s: %v, %v, %v", spec, from, to, err)
		}
	}
}

func TestAt(t *testing.T) {
	r, ids := talk(t)
	if got, err := r.At(t.Context(), ids["thanks"], noon.Add(-90*time.Minute)); got != ids["result"] || err != nil {
		t.Errorf("90 minutes ago: %v, %v", got.Short(), err)
	}
	if _, err := r.At(t.Context(), ids["thanks"], noon.Add(-24*time.Hour)); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("a day ago: %v, want ErrNotFound", err)
	}
}

func TestCheck(t *testing.T) {
	for _, good := range []string{"main", "feature/x", "héllo", "2026-11-21", "a.b"} {
		if err := Check(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "HEAD", "@", "-x", "a..b", "a b", "x.lock", "a//b", "/a", "a/", "a~1", "x^", "a:b", "tab\t", "\u202ex", "\xff", "e\u0301", "a@{1}", strings.Repeat("x", 250)} {
		if err := Check(bad); err == nil {
			t.Errorf("%q is allowed", bad)
		}
	}
}

func TestParseTime(t *testing.T) {
	for s, want := range map[string]time.Time{
		"2026-11-20": noon.Add(-36 * time.Hour), "2026-11-21T10:00": noon.Add(-2 * time.Hour), "2026-11-21T10:00:00Z": noon.Add(-2 * time.Hour),
		"2026-11-21T10:00:00+02:00": noon.Add(-4 * time.Hour), "yesterday": noon.Add(-24 * time.Hour), "now": noon, "today": noon.Add(-12 * time.Hour),
		"2 hours ago": noon.Add(-2 * time.Hour), "3.days.ago": noon.Add(-72 * time.Hour), "1 week": noon.Add(-7 * 24 * time.Hour), "90m": noon.Add(-90 * time.Minute), "2d": noon.Add(-48 * time.Hour),
	} {
		if got, err := ParseTime(s, noon); !got.Equal(want) || err != nil {
			t.Errorf("%s: %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "soon", "-2h", "2 parsecs ago", "99999999999 days ago", "2026-13-01"} {
		if got, err := ParseTime(s, noon); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}

func FuzzResolve(f *testing.F) {
	for _, s := range []string{"HEAD~3^{turn}", "main@{2}", ":/x", "a..b", "@{yesterday}", "deadbeef", "~", "^{"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, rev string) {
		r, _ := talk(t)
		if id, err := r.Resolve(t.Context(), rev); err == nil && id.IsZero() {
			t.Errorf("%q is nothing, without an error", rev)
		}
	})
}
