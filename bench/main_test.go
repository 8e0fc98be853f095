package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The measurements start this program again as a child process; here that is the test binary.
func TestMain(m *testing.M) {
	if isChild(os.Args[1:]) {
		main()
		return
	}
	os.Exit(m.Run())
}

// shortRun returns the arguments of a very short run. SQLite is left out, since it takes a C
// compiler and a minute to build and has tests of its own.
func shortRun(t *testing.T, more ...string) (dir string, args []string) {
	t.Helper()
	dir = t.TempDir()
	sqlite := ""
	if os.Getenv("TRACT_TORTURE") != "" {
		sqlite = "./sqlite"
	}
	return dir, append([]string{
		"-sizes", "3,30", "-time", "10ms", "-rounds", "1", "-turns", "3", "-dir", dir, "-sqlite", sqlite, "-program", "../cmd/tract", "-out", filepath.Join(dir, "bench.json"),
	}, more...)
}

func TestEveryLineIsMeasuredPrintedAndWritten(t *testing.T) {
	dir, args := shortRun(t)
	var out, progressOut bytes.Buffer
	if err := run(t.Context(), args, &out, &progressOut); err != nil {
		t.Fatalf("%v\n%s", err, &progressOut)
	}
	r, err := readReport(filepath.Join(dir, "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]result{}
	for _, res := range r.Results {
		measured[res.Name] = res
		if !strings.Contains(out.String(), res.Name) {
			t.Errorf("%q is not in the table", res.Name)
		}
	}
	wanted := []string{
		"durable append, empty store, to a bare bbolt put", "durable append, store of 30, to a JSON line, fdatasync", "three commits of one turn",
		"commits of 64 goroutines, one branch", "4 processes write, 2 read: fairness, fewest to most commits", "warm compile in a new process, 3 commits",
		"compile after one commit, same process, 30 commits", "compile with a budget of 800 KB, 30 commits", "walk of headers, a commit, 30 commits",
		"tract log -n 20, 30 commits", "bytes before gc, 30 commits", "bytes after gc, 30 commits, to the text", "bytes of a conversation of 3 turns after gc",
		"bytes of an agent's conversation of 3 turns after gc", "longest append during gc, 30 commits", "longest append during purge, 30 commits",
		"purge of one message, 30 commits", "warm compile in a new process, 30 commits, 2-30 KB messages", "decode a chat stream", "start of tract version",
	}
	if canEvict {
		wanted = append(wanted, "cold compile in a new process, 30 commits", "cold compile after gc in a new process, 30 commits")
	}
	for _, name := range wanted {
		if measured[name].Value <= 0 {
			t.Errorf("%q was not measured", name)
		}
	}
	if failures := measured["4 processes write, 2 read: failures"]; failures.Verdict != "ok" {
		t.Errorf("writing processes: %+v", failures)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("it leaves %v behind, %v; want bench.json only", left, err)
	}
}

// TestAnEarlierRunIsShown: what was measured once can be compared and put into a
// page without measuring again.
func TestAnEarlierRunIsShown(t *testing.T) {
	dir := t.TempDir()
	for name, ratio := range map[string]float64{"old": 1, "new": 2} {
		r := report{Results: []result{{Name: "work", Ratio: ratio, BaselineName: "x"}}}
		if err := r.write(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte(docMark), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	args := []string{"-from", filepath.Join(dir, "new"), "-compare", filepath.Join(dir, "old"), "-doc", page, "-out", filepath.Join(dir, "out")}
	if err := run(t.Context(), args, &out, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(page); err != nil || !strings.Contains(string(got), "| work |") {
		t.Errorf("the page has %q, %v", got, err)
	}
	if !strings.Contains(out.String(), "1 -> 2") {
		t.Errorf("it prints\n%s", &out)
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("what was not measured is written")
	}
}

func TestOnlySomeLines(t *testing.T) {
	_, args := shortRun(t, "-only", "^walk$", "-program", "")
	var out bytes.Buffer
	if err := run(t.Context(), args, &out, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "walk of headers") || strings.Contains(out.String(), "compile") {
		t.Errorf("-only ^walk$ gives\n%s", &out)
	}
}

func TestBadArgumentsAreRefused(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		`-sizes ""`:                           {"-sizes", ""},
		`-sizes "0"`:                          {"-sizes", "0"},
		`-sizes "1000,many"`:                  {"-sizes", "1000,many"},
		`-only "["`:                           {"-only", "["},
		`-only "nothing": no measurement`:     {"-only", "nothing"},
		`-rounds 0: want at least 1`:          {"-rounds", "0"},
		`-turns 1: want at least 2`:           {"-turns", "1"},
		`unexpected argument "all"`:           {"all"},
		"it has no line":                      {"-doc", broken},
		"no such file":                        {"-compare", filepath.Join(dir, "none.json")},
		"broken.json: unexpected end of JSON": {"-compare", broken},
	} {
		err := run(t.Context(), append([]string{"-dir", dir, "-program", "", "-sqlite", ""}, args...), &bytes.Buffer{}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q in it", args, err, want)
		}
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		l             limit
		value, spread float64
		want          string
	}{
		{noLimit, 9, 1, ""},
		{atMost(2), 2, 1, "ok"},
		{atMost(2), 2.1, 1, "MISSED"},
		{atMost(2), 2.1, 4.1, "unsteady"},
		{atLeast(0.8), 0.8, 0, "ok"},
		{atLeast(0.8), 0.7, 0, "MISSED"},
		{atMost(0), 0, 0, "ok"},
		{atMost(0), 1, 0, "MISSED"},
	} {
		if got := c.l.verdict(c.value, c.spread); got != c.want {
			t.Errorf("%v with %+v, spread %v: %q, want %q", c.value, c.l, c.spread, got, c.want)
		}
	}
}

func TestFigures(t *testing.T) {
	f := times("x", []time.Duration{9 * time.Millisecond, time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond, 4 * time.Millisecond})
	if f.median() != 3 || f.spread() != 9 {
		t.Errorf("median %v, spread %v; want 3 and 9", f.median(), f.spread())
	}
	if rate := per("x", 10, []time.Duration{2 * time.Second}); rate.median() != 5 {
		t.Errorf("10 things in 2 s are %v/s", rate.median())
	}
	for v, want := range map[float64]string{0: "0", 0.01234: "0.0123", 12345: "12345", 99.94: "99.9"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]float64{0: 0, 0.0123456: 0.01235, 123456: 123500} {
		if got := round(v); got != want {
			t.Errorf("round(%v) = %v, want %v", v, got, want)
		}
	}
}

func TestCompareSaysWhatMoved(t *testing.T) {
	old := &report{Results: []result{
		{Name: "slower", Ratio: 1, BaselineName: "x"}, {Name: "same", Ratio: 1, BaselineName: "x"}, {Name: "faster", Value: 10, HigherIsBetter: true}, {Name: "gone", Value: 1},
	}}
	now := &report{Results: []result{
		{Name: "slower", Ratio: 1.3, BaselineName: "x", Spread: 5}, {Name: "same", Ratio: 1.1, Value: 99, BaselineName: "x"}, {Name: "faster", Value: 15, HigherIsBetter: true}, {Name: "new", Value: 1},
	}}
	var out bytes.Buffer
	now.printChanges(&out, old)
	if got := strings.Join(strings.Fields(out.String()[strings.Index(out.String(), "\n  "):]), " "); got != "slower 1 -> 1.3 worse, unsteady faster 10 -> 15 better" {
		t.Errorf("it says %q", got)
	}
	out.Reset()
	now.printChanges(&out, now)
	if !strings.HasSuffix(out.String(), "nothing\n") {
		t.Errorf("of itself it says %q", &out)
	}
}

func TestTheTableOfAPageIsReplaced(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("Words.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &report{Results: []result{{Name: "first", Value: 3, Unit: "ms", Baseline: 2, BaselineName: "x", Ratio: 1.5, Limit: 2, Verdict: "ok"}}}
	if err := r.document(page); err == nil {
		t.Error("a page without a mark is written to")
	}
	if err := os.WriteFile(page, []byte("Words.\n"+docMark+"old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.document(page); err != nil {
		t.Fatal(err)
	}
	r.Results[0].Name = "second"
	if err := r.document(page); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil || !strings.HasPrefix(string(got), "Words.\n"+docMark) || !strings.Contains(string(got), "\n| second | 3 ms | x | 2 ms | 0 | 0 | 1.5 | ≤ 2 | ok |\n") {
		t.Errorf("%v\n%s", err, got)
	}
	if strings.Contains(string(got), "old") || strings.Contains(string(got), "first") {
		t.Errorf("what was there before stays:\n%s", got)
	}
}

func TestTurnsAlternateFairly(t *testing.T) {
	var order []int
	sides := make([]side, 3)
	for i := range sides {
		sides[i] = func(context.Context) (time.Duration, error) {
			order = append(order, i)
			return time.Duration(i + 1), nil
		}
	}
	took, err := alternate(t.Context(), 3, 0, sides...)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{0, 1, 2, 0, 1, 2, 1, 2, 0, 2, 0, 1}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	for i, d := range took {
		if want := time.Duration(i + 1); !slices.Equal(d, []time.Duration{want, want, want}) {
			t.Errorf("side %d took %v", i, d)
		}
	}
}

// TestMessagesAreAsChatsHaveThem: the same in every process, none twice, about 600
// bytes, and with as much repetition as language has.
func TestMessagesAreAsChatsHaveThem(t *testing.T) {
	seen, words, total := map[string]bool{}, map[string]int{}, 0
	const n = 2000
	for i := range n {
		m := message(historySeed, i)
		if m != message(historySeed, i) {
			t.Fatalf("message %d is not always the same", i)
		}
		if seen[m] {
			t.Errorf("message %d comes twice", i)
		}
		seen[m] = true
		total += len(m)
		for w := range strings.FieldsSeq(m) {
			words[w]++
		}
	}
	if mean := total / n; mean < 550 || mean > 700 {
		t.Errorf("a message has %d bytes", mean)
	}
	if len(words) < 3000 || len(words) > 30_000 {
		t.Errorf("%d different words", len(words))
	}
}

func TestGroupsLoseNothing(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "group.log"))
	if err != nil {
		t.Fatal(err)
	}
	g := &groupFile{file: f}
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for n := range 20 {
				line := fmt.Sprintf("%d/%d\n", w, n)
				if err := g.append([]byte(line)); err != nil {
					t.Error(err)
				}
				if now, err := os.ReadFile(f.Name()); err != nil || !bytes.Contains(now, []byte(line)) {
					t.Errorf("%q was acknowledged and is not there, %v", line, err)
				}
			}
		})
	}
	wg.Wait()
	got, err := os.ReadFile(f.Name())
	if lines := strings.Split(strings.TrimSpace(string(got)), "\n"); err != nil || len(lines) != 320 || len(slices.Compact(slices.Sorted(slices.Values(lines)))) != 320 {
		t.Errorf("%d lines, %v; want 320, each once", len(lines), err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.append([]byte("x")); err == nil {
		t.Error("a record is acknowledged that cannot be written")
	}
}

func TestChildRefusesInvalidRequests(t *testing.T) {
	for _, args := range [][]string{{}, {"compile"}, {"fly", "store"}, {"compile", filepath.Join(t.TempDir(), "none")}, {"read", filepath.Join(t.TempDir(), "none")}} {
		if err := child(args, strings.NewReader(""), &bytes.Buffer{}); err == nil {
			t.Errorf("child %q: no error", args)
		}
	}
	var out bytes.Buffer
	dir := t.TempDir()
	if err := seed(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if err := child([]string{"compile", dir}, nil, &out); err != nil {
		t.Fatal(err)
	}
	var f childResult
	if err := json.Unmarshal(out.Bytes(), &f); err != nil || f.Bytes == 0 {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestAWorkerWorksAtLeastOnce ends the input of a worker at once, as it happens to a
// process that a busy machine starts late: it has still something to measure.
func TestAWorkerWorksAtLeastOnce(t *testing.T) {
	for range 1000 {
		worked := 0
		if err := workUntilInputEnds(strings.NewReader("go\n"), io.Discard, func(int) { worked++ }); err != nil || worked == 0 {
			t.Fatalf("it worked %d times, %v", worked, err)
		}
	}
}
