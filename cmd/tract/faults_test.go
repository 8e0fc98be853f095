//go:build !windows

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tract-vcs/tract/internal/faulttest"
	"github.com/tract-vcs/tract/llm/llmtest"
)

// faultEnv makes the test binary be the program; its value is the size in bytes beyond
// which no file may grow, or 0.
const faultEnv = "TRACT_TEST_PROGRAM"

// asProgram is the program under a limit of file sizes, which stands for a full disk.
func asProgram(limit string) int {
	faulttest.FilterCalls()
	n, err := strconv.ParseUint(limit, 10, 63)
	if err == nil && n > 0 {
		signal.Ignore(syscall.SIGXFSZ)
		var most syscall.Rlimit
		store(&most.Cur, n)
		store(&most.Max, n)
		err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &most)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return codeUsage
	}
	return mainCode()
}

// store sets a limit, which systems count with and without a sign.
func store[T int64 | uint64](limit *T, n uint64) { *limit = T(n) }

// verbs are the commands that change something, each as it is typed.
var verbs = [][]string{
	{"init", "other"},
	{"system", "Be brief."},
	{"user", "One more question?"},
	{"assistant", "One more answer."},
	{"reasoning", "add", "A thought."},
	{"tool-call", "-b", "other", "--new", "call_1", "look", "{}"},
	{"tool-result", "-b", "side", "call_0", "found"},
	{"commit", "--kind", "note", "A note."},
	{"annotate", "HEAD~2", "skip"},
	{"pin", "HEAD~1"},
	{"skip", "HEAD~3"},
	{"edit", "HEAD~2", "Said better."},
	{"branch", "new"},
	{"switch", "-c", "new"},
	{"tag", "v2"},
	{"reset", "HEAD~2"},
	{"undo"},
	{"user", "-b", "elsewhere", "--new", "Hello there."},
	{"import", "log.json", "--as", "imported"},
	{"generate"},
	{"chat", "And now?"},
	{"user", "-F", "large"},
	{"gc", "--pack"},
	{"gc", "--prune", "--grace", "0"},
	{"purge", "HEAD~1", "v1", "--yes"},
	{"purge", "--reasoning", "--older-than", "0", "--yes"},
	{"purge", "--secrets", "--mask", "--yes"},
	{"purge", "--secrets", "--yes"},
	{"backup", "copy"},
	{"recover", ".tract", "saved"},
	{"config", "set", "user.name", "grace"},
	{"config", "set", "core.pager", "more"},
}

// faultDir makes a folder with a store that has something of everything, and lists its commits.
func faultDir(t *testing.T) (dir string, env []string, commits map[string]bool) {
	t.Helper()
	dir = t.TempDir()
	answer := `{"id":"r","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","reasoning_content":"thinking","content":"An answer."}}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`
	script := make([]llmtest.Exchange, 5000)
	for i := range script {
		script[i] = llmtest.Exchange{Body: answer}
	}
	server, err := llmtest.Serve(script...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	env = append(os.Environ(), "HOME="+dir, "TMPDIR="+t.TempDir(), "USER=ada", "TRACT_PROVIDER=chat", "TRACT_MODEL=m", "TRACT_BASE_URL="+server.URL()+"/v1", "TRACT_DIR=")
	for name, text := range map[string]string{
		"log.json": `[{"role":"user","content":"Imported?"},{"role":"assistant","content":"Yes."}]`,
		"large":    strings.Repeat("many words ", 120_000),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init"},
		{"system", "You know things."},
		{"user", "First?"},
		{"reasoning", "add", "A thought."},
		{"assistant", "First."},
		{"user", "Second?"},
		{"branch", "side"},
		{"tag", "v1"},
		{"assistant", "Second."},
		{"user", "Third? It is ghp_aB3dE6aB3dE6aB3dE6aB3dE6aB3dE6aB3dE6."},
		{"user", "-b", "side", "Aside."},
		{"tool-call", "-b", "side", "call_0", "look", "{}"},
	} {
		if out, err := program(t, dir, env, 0, args).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	commits, err = idsOf(t, dir, env)
	if err != nil {
		t.Fatal(err)
	}
	return dir, env, commits
}

func program(t *testing.T, dir string, env []string, limit int, args []string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir, cmd.Env = dir, append(env[:len(env):len(env)], faultEnv+"="+strconv.Itoa(limit))
	return cmd
}

// restore makes a folder what another was.
func restore(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Mkdir(filepath.Join(to, rel), 0o700)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// faultRounds is how often something is done: usual, with -short, in make torture.
func faultRounds(short, usual, long int) int {
	switch {
	case os.Getenv("TRACT_TORTURE") != "":
		return long
	case testing.Short():
		return short
	}
	return usual
}

var acknowledgedID = regexp.MustCompile(`(?m)^\[\S+ ([0-9a-f]{7})\]`)

// TestKillDuringEveryCommand kills every command that changes something at random moments.
// The store is sound then, nothing that was acknowledged is lost, and the same command
// works without any repair.
func TestKillDuringEveryCommand(t *testing.T) {
	t.Parallel()
	base, env, commits := faultDir(t)
	dir := filepath.Join(t.TempDir(), "work")
	r := rand.New(rand.NewPCG(11, uint64(time.Now().UnixNano())))
	killed, done := 0, 0
	for _, args := range verbs {
		restore(t, base, dir)
		begun := time.Now()
		if out, err := program(t, dir, env, 0, args).CombinedOutput(); err != nil {
			t.Fatalf("%v does not even work: %v: %s", args, err, out)
		}
		whole := time.Since(begun)
		for range faultRounds(1, 2, 60) {
			restore(t, base, dir)
			cmd := program(t, dir, env, 0, args)
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(r.Int64N(int64(whole) + 1)))
			_ = cmd.Process.Kill()
			if err := cmd.Wait(); err == nil {
				done++
			} else {
				killed++
			}
			wantUsable(t, dir, env, args, out.String(), commits)
		}
	}
	t.Logf("%d commands were killed, %d were faster", killed, done)
	if killed == 0 {
		t.Error("nothing was ever killed")
	}
}

// usable says what is wrong with a store after a command of which something was heard.
// before is the commits that the store had before it.
func usable(t *testing.T, dir string, env, args []string, heard string, before map[string]bool) error {
	t.Helper()
	if out, err := program(t, dir, env, 0, []string{"fsck"}).CombinedOutput(); err != nil {
		return fmt.Errorf("fsck: %w: %s", err, out)
	}
	all, err := idsOf(t, dir, env)
	if err != nil {
		return err
	}
	for id := range before {
		if !all[id] && args[0] != "reset" && args[0] != "undo" {
			return fmt.Errorf("commit %s is lost", id)
		}
	}
	for _, m := range acknowledgedID.FindAllStringSubmatch(heard, -1) {
		found := args[0] == "switch"
		for id := range all {
			found = found || strings.HasPrefix(id, m[1])
		}
		if !found {
			return fmt.Errorf("commit %s was acknowledged and is lost", m[1])
		}
	}
	out, err := program(t, dir, env, 0, args).CombinedOutput()
	if err != nil && !bytes.Contains(out, []byte("exists")) && !bytes.Contains(out, []byte("call_")) {
		return fmt.Errorf("the same again: %w: %s", err, out)
	}
	return nil
}

func wantUsable(t *testing.T, dir string, env, args []string, heard string, before map[string]bool) {
	t.Helper()
	if err := usable(t, dir, env, args, heard, before); err != nil {
		t.Fatalf("after %v: %v", args, err)
	}
}

// idsOf is the commits that refs lead to.
func idsOf(t *testing.T, dir string, env []string) (map[string]bool, error) {
	t.Helper()
	out, err := program(t, dir, env, 0, []string{"log", "--all", "--annotations", "--json"}).Output()
	if err != nil {
		return nil, fmt.Errorf("log: %w: %s", err, out)
	}
	var list []struct{ ID string }
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for _, c := range list {
		ids[c.ID] = true
	}
	return ids, nil
}

// TestFaultInjectionWorks: a commit that was said to be there and is not, and a journal
// that was lost without a trace, are found out.
func TestFaultInjectionWorks(t *testing.T) {
	base, env, commits := faultDir(t)
	dir := filepath.Join(t.TempDir(), "work")
	restore(t, base, dir)
	if err := usable(t, dir, env, []string{"user", "x"}, "[main 0123456] user: x\n", commits); err == nil {
		t.Error("a commit that never was is not missed")
	}
	restore(t, base, dir)
	store := filepath.Join(dir, ".tract")
	journal, err := os.ReadFile(filepath.Join(store, "tract.db-journal"))
	if err != nil {
		t.Fatal(err)
	}
	clear(journal[4096:])
	err = os.WriteFile(filepath.Join(store, "tract.db-journal"), journal, 0o600)
	if err := usable(t, dir, env, []string{"user", "x"}, "", commits); err == nil {
		t.Error("a journal that was lost is not missed")
	}
	if err := errors.Join(err, os.Remove(filepath.Join(store, "tract.db-lock"))); err != nil {
		t.Fatal(err)
	}
	if err := usable(t, dir, env, []string{"user", "x"}, "", commits); err == nil {
		t.Error("a journal that was lost with its anchor is not missed")
	}
}

// TestFullDiskDuringEveryCommand lets no file grow beyond a size, at many sizes. A command
// works or says why it does not; the store is sound, and the command works when there
// is room again.
func TestFullDiskDuringEveryCommand(t *testing.T) {
	t.Parallel()
	base, env, commits := faultDir(t)
	dir := filepath.Join(t.TempDir(), "work")
	r := rand.New(rand.NewPCG(12, uint64(time.Now().UnixNano())))
	failed := 0
	for _, args := range verbs {
		for range faultRounds(1, 2, 60) {
			restore(t, base, dir)
			limit := []int{1 + r.IntN(8<<10), 32<<10 + r.IntN(64<<10), 64<<10 + r.IntN(2<<20)}[r.IntN(3)]
			out, err := program(t, dir, env, limit, args).CombinedOutput()
			if err != nil {
				failed++
				if !bytes.Contains(out, []byte("tract: error: ")) || bytes.Contains(out, []byte("goroutine ")) {
					t.Fatalf("%v with files of at most %d bytes: %v: %s", args, limit, err, out)
				}
			}
			heard := string(out)
			if err != nil {
				heard = ""
			}
			wantUsable(t, dir, env, args, heard, commits)
		}
	}
	t.Logf("%d commands had no room", failed)
	if failed == 0 {
		t.Error("there was always room")
	}
}

// TestReadingCommandsWriteNothing runs every command that only reads and compares the files
// before and after.
func TestReadingCommandsWriteNothing(t *testing.T) {
	t.Parallel()
	dir, env, _ := faultDir(t)
	before := filesOf(t, filepath.Join(dir, ".tract"))
	for _, args := range [][]string{
		{"log"},
		{"log", "--all", "--graph"},
		{"show"},
		{"compile", "--explain"},
		{"check", "--for", "chat"},
		{"diff", "HEAD~1", "HEAD"},
		{"status"},
		{"branch"},
		{"tag"},
		{"reflog"},
		{"rescue"},
		{"cat-file", "-p", "HEAD"},
		{"rev-parse", "HEAD"},
		{"branch", "--all"},
		{"fsck"},
		{"gc"},
		{"doctor"},
		{"config", "list"},
		{"generate", "--dry-run"},
		{"backup", "../copy-of-it"},
		{"recover", ".tract", "../saved"},
		{"grep", "a"},
		{"blame"},
		{"why"},
		{"verify"},
		{"scan", "--all"},
		{"usage"},
		{"op", "log"},
		{"merge-base", "HEAD", "HEAD~1"},
		{"reasoning", "list"},
		{"reasoning", "stats"},
		{"profile", "list"},
		{"purge", "HEAD", "--dry-run"},
		{"purge", "--reasoning", "--dry-run"},
	} {
		out, err := program(t, dir, env, 0, args).CombinedOutput()
		if err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		if after := filesOf(t, filepath.Join(dir, ".tract")); after != before {
			t.Errorf("%v has changed the store:\n%s\nbefore:\n%s", args, after, before)
		}
	}
}

// filesOf is the names, times and contents of the files of a folder.
func filesOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&all, e.Name(), info.ModTime().UnixNano(), len(b), strings.Count(string(b), "\x00"))
	}
	return all.String()
}
