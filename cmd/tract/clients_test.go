//go:build clients

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tract-vcs/tract/internal/fakeprovider"
)

// These tests run the real agents, which make clients installs from npm into the folder that
// TRACT_CLIENTS names, through tract proxy against a scripted provider.

// A realClient is an agent and how it is run without a person.
type realClient struct {
	name   string   // its folder in TRACT_CLIENTS, and its executable
	args   []string // before the prompt of a new session
	resume []string // before the prompt of the newest session again
	env    []string
	files  map[string]string // to write below the home folder; PROXY stands for the base URL
	local  map[string]string // to write into the work folder
	agents string            // the plan that asks a sub-agent; empty: it is not run
	server bool              // it needs tract proxy, as its base URL is in a file
}

// testKey is in no file of a store, whichever client sends it.
const testKey = "sk-ant-api03-TESTKEYTESTKEYTESTKEYTESTKEY0001"

var realClients = []realClient{
	{
		name: "claude", args: []string{"--dangerously-skip-permissions", "-p"}, resume: []string{"--dangerously-skip-permissions", "-c", "-p"},
		env: []string{"ANTHROPIC_API_KEY=" + testKey, "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "IS_SANDBOX=1"}, agents: "agent",
	},
	{
		name: "codex", args: []string{"exec", "--skip-git-repo-check"}, resume: []string{"exec", "--skip-git-repo-check", "resume", "--last"}, agents: "spawn",
		files: map[string]string{
			".codex/config.toml": "model = \"gpt-5.2-codex\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n[analytics]\nenabled = false\n",
			".codex/auth.json":   `{"OPENAI_API_KEY":"` + testKey + `"}`,
		},
	},
	{
		name: "gemini", args: []string{"-y", "-p"}, resume: []string{"-y", "-r", "latest", "-p"},
		env: []string{"GEMINI_API_KEY=" + testKey, "GEMINI_CLI_TRUST_WORKSPACE=true"},
		files: map[string]string{
			".gemini/settings.json": `{"privacy":{"usageStatisticsEnabled":false},"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"disableAutoUpdate":true}}`,
		},
	},
	{
		name: "opencode", args: []string{"run", "-m", "anthropic/claude-sonnet-4-5"}, resume: []string{"run", "-c", "-m", "anthropic/claude-sonnet-4-5"}, agents: "agent", server: true,
		env:   []string{"ANTHROPIC_API_KEY=" + testKey, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1"},
		local: map[string]string{"opencode.json": "opencode"},
	},
	{
		name: "pi", args: []string{"-p", "--model", "anthropic/claude-sonnet-4-5", "--thinking", "high"}, resume: []string{"-p", "-c", "--model", "anthropic/claude-sonnet-4-5", "--thinking", "high"}, server: true,
		env:   []string{"ANTHROPIC_API_KEY=" + testKey, "PI_OFFLINE=1"},
		files: map[string]string{".pi/agent/models.json": "pi"},
	},
}

// clientRun is a client with a provider, a store and folders of its own.
type clientRun struct {
	t        *testing.T
	c        realClient
	tract    string
	work     string
	env      []string
	provider *fakeprovider.Provider
}

func newClientRun(t *testing.T, c realClient) *clientRun {
	t.Helper()
	folder := os.Getenv("TRACT_CLIENTS")
	if folder == "" {
		t.Fatal("TRACT_CLIENTS names no folder: run make clients")
	}
	r := &clientRun{t: t, c: c, tract: buildTract(t), work: t.TempDir()}
	home := t.TempDir()
	r.provider = fakeprovider.New(fakeprovider.Options{Dir: r.work, Pause: time.Millisecond})
	server := httptest.NewServer(r.provider)
	t.Cleanup(server.Close)
	r.env = append([]string{
		"HOME=" + home, "PATH=" + filepath.Join(folder, c.name, "node_modules", ".bin") + string(filepath.ListSeparator) + os.Getenv("PATH"), "CODEX_HOME=" + filepath.Join(home, ".codex"),
		"ANTHROPIC_BASE_URL=" + server.URL, "OPENAI_BASE_URL=" + server.URL, "GOOGLE_GEMINI_BASE_URL=" + server.URL,
	}, c.env...)
	writeFile(t, filepath.Join(r.work, "a.txt"), "alpha\nbeta\ngamma\n")
	for name, text := range c.files {
		if c.server {
			continue // of the proxy's address
		}
		writeFile(t, filepath.Join(home, name), text)
	}
	r.run(0, "git", "init", "-q", ".")
	r.run(0, r.tract, "init")
	if c.server {
		r.serve(home)
	}
	return r
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// buildTract builds the program.
func buildTract(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tract")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// command returns a command in the work folder, with the environment of the run.
func (r *clientRun) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env, c.WaitDelay = r.work, r.env, 5*time.Second // a client may leave children with its output
	if path := r.lookPath(name); path != "" {
		c.Path, c.Err = path, nil
	}
	return c
}

// lookPath finds an executable in the PATH of the run.
func (r *clientRun) lookPath(name string) string {
	for _, v := range r.env {
		if list, ok := strings.CutPrefix(v, "PATH="); ok && !strings.Contains(name, "/") {
			for _, dir := range filepath.SplitList(list) {
				if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
					return filepath.Join(dir, name)
				}
			}
		}
	}
	return ""
}

// run runs a command, and returns what it printed.
func (r *clientRun) run(code int, name string, args ...string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Minute) // a client that hangs
	defer cancel()
	c := r.command(ctx, name, args...)
	out, err := c.CombinedOutput()
	if got := c.ProcessState.ExitCode(); got != code {
		r.t.Fatalf("%s %q: exit code %d, want %d: %v\n%s", name, args, got, code, err, out)
	}
	return string(out)
}

// serve starts tract proxy on a free port, and writes the files of the client.
func (r *clientRun) serve(home string) {
	r.t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	listen := free.Addr().String()
	if err := free.Close(); err != nil {
		r.t.Fatal(err)
	}
	c := r.command(context.WithoutCancel(r.t.Context()), r.tract, "proxy", "--listen", listen)
	var out bytes.Buffer
	c.Stderr = &out
	if err := c.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		if err := c.Wait(); err != nil {
			r.t.Errorf("tract proxy: %v\n%s", err, &out)
		}
	})
	for range 500 { // until it listens
		if r.command(r.t.Context(), r.tract, "proxy", "status", "--listen", listen).Run() == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for folder, files := range map[string]map[string]string{home: r.c.files, r.work: r.c.local} {
		for name, client := range files {
			setup := r.run(0, r.tract, "proxy", "env", client, "--json", "--listen", listen)
			var s clientSetupJSON
			if err := json.Unmarshal([]byte(setup), &s); err != nil {
				r.t.Fatal(err)
			}
			writeFile(r.t, filepath.Join(folder, name), s.Content)
		}
	}
}

// ask runs the client with a plan; again: in its newest session.
func (r *clientRun) ask(again bool, plan string) string {
	r.t.Helper()
	args := r.c.args
	if again {
		args = r.c.resume
	}
	args = append(slices.Clone(args), "PLAN:"+plan+" please")
	if r.c.server {
		return r.run(0, r.c.name, args...)
	}
	return r.run(0, r.tract, append([]string{"proxy", "run", "--strict", "--", r.c.name}, args...)...)
}

var responseID = regexp.MustCompile(`"(?:id|responseId)":"((?:msg_|resp_|chatcmpl-)?[0-9a-f]{24})"`)

// recorded returns the response ids of all branches, each with how often it is in the store.
func (r *clientRun) recorded() map[string]int {
	r.t.Helper()
	var rows []struct {
		ID     string
		Kind   string
		Origin struct {
			ResponseID string `json:"response_id"`
		}
	}
	if err := json.Unmarshal([]byte(r.run(0, r.tract, "log", "--all", "--json")), &rows); err != nil {
		r.t.Fatal(err)
	}
	commits := map[string]map[string]bool{}
	for _, row := range rows {
		if id := row.Origin.ResponseID; id != "" {
			if commits[id] == nil {
				commits[id] = map[string]bool{}
			}
			commits[id][row.Kind+row.ID] = true
		}
	}
	found := map[string]int{}
	for id, of := range commits {
		found[id] = len(of)
	}
	return found
}

// checkRecorded checks that every response that the provider sent whole is in the store.
func (r *clientRun) checkRecorded() {
	r.t.Helper()
	var found map[string]int
	missing := []string{"?"}
	for range 100 { // a proxy that goes on running commits soon after the answer
		found, missing = r.recorded(), nil
		for _, body := range r.provider.Sent() {
			id := responseID.FindSubmatch(body)
			whole := bytes.Contains(body, []byte("message_stop")) || bytes.Contains(body, []byte("response.completed")) || bytes.Contains(body, []byte("[DONE]")) || bytes.Contains(body, []byte(`"finishReason":"STOP"`))
			if id != nil && whole && found[string(id[1])] == 0 {
				missing = append(missing, string(id[1]))
			}
		}
		if len(missing) == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if len(missing) > 0 {
		r.t.Errorf("%d of %d responses are not recorded: %q", len(missing), len(r.provider.Sent()), missing)
	}
	if out, err := exec.Command("grep", "-r", "-l", testKey, filepath.Join(r.work, ".tract")).Output(); err == nil {
		r.t.Errorf("the key is in %s", out)
	}
	if out := r.run(0, r.tract, "fsck"); strings.Contains(out, "damage:") {
		r.t.Errorf("fsck: %s", out)
	}
}

// branches returns the branches whose names match.
func (r *clientRun) branches(pattern string) []string {
	r.t.Helper()
	var rows []struct{ Name string }
	if err := json.Unmarshal([]byte(r.run(0, r.tract, "branch", "--json")), &rows); err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, row := range rows {
		if regexp.MustCompile(pattern).MatchString(row.Name) {
			names = append(names, row.Name)
		}
	}
	return names
}

// TestRealClients runs each agent through several turns, parallel calls, refusals, a cut stream,
// a resumed session and a sub-agent.
func TestRealClients(t *testing.T) {
	for _, c := range realClients {
		t.Run(c.name, func(t *testing.T) {
			r := newClientRun(t, c)
			for _, turn := range []struct {
				again bool
				plan  string
				want  string
			}{
				{false, "count", "a.txt has three lines."},
				{true, "parallel", "One and two."},
				{true, "overload", "After an overload."},
				{true, "limited", "After a pause."},
				{true, "cut", "This was cut off once and is whole now"},
			} {
				if out := r.ask(turn.again, turn.plan); !strings.Contains(out, turn.want) {
					t.Errorf("%s: %q is not in\n%s", turn.plan, turn.want, out)
				}
			}
			if c.agents != "" {
				if out := r.ask(false, c.agents); !strings.Contains(out, "The helper has looked.") {
					t.Errorf("sub-agent: %s", out)
				}
				if found := r.branches(`^proxy/.*/agent-`); len(found) != 1 {
					t.Errorf("branches of sub-agents: %q, want one", found)
				}
			}
			r.checkRecorded()
		})
	}
}

// TestAClientThatIsStopped stops an agent in the middle of an answer: its exit code is the one
// of a stopped process, and what it was told is kept.
func TestAClientThatIsStopped(t *testing.T) {
	r := newClientRun(t, realClients[0])
	c := r.command(t.Context(), r.tract, append([]string{"proxy", "run", "--", "claude"}, append(r.c.args, "PLAN:slow please")...)...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for len(r.provider.Sent()) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(time.Second) // into the answer
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil {
		t.Error("the stopped agent exits with 0")
	}
	if out := r.run(0, r.tract, "log", "--all"); !strings.Contains(out, "PLAN:slow") {
		t.Errorf("the question is lost:\n%s", out)
	}
}

// TestAKilledProxy kills the proxy in the middle of an answer. The next run brings in what the
// spool has, and every whole response before is there.
func TestAKilledProxy(t *testing.T) {
	r := newClientRun(t, realClients[0])
	r.ask(false, "count")
	c := r.command(t.Context(), r.tract, append([]string{"proxy", "run", "--", "claude"}, append(r.c.resume, "PLAN:slow please")...)...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for before := len(r.provider.Sent()); len(r.provider.Sent()) == before; {
		time.Sleep(10 * time.Millisecond)
	}
	begun := r.provider.Sent()
	for !r.spoolContains(begun[len(begun)-1]) { // until the proxy has the beginning of the answer
		time.Sleep(10 * time.Millisecond)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed
	r.ask(false, "hello")
	r.checkRecorded()
}

// spoolContains reports whether a file of the spool has some bytes.
func (r *clientRun) spoolContains(b []byte) bool {
	files, _ := filepath.Glob(filepath.Join(r.work, ".tract", "spool", "*"))
	return slices.ContainsFunc(files, func(path string) bool {
		data, _ := os.ReadFile(path)
		return bytes.Contains(data, b)
	})
}

// TestALockedStore has another process hold the store while an agent works: the agent notices
// nothing, and what it said is recorded when the store is free again.
func TestALockedStore(t *testing.T) {
	r := newClientRun(t, realClients[0])
	done := make(chan string, 1)
	go func() {
		c := r.command(t.Context(), r.tract, append([]string{"proxy", "run", "--", "claude"}, append(r.c.args, "PLAN:many please")...)...)
		out, err := c.CombinedOutput()
		done <- fmt.Sprintf("%s%v", out, err)
	}()
	answers := func(n int) {
		for len(r.provider.Sent()) < n {
			time.Sleep(5 * time.Millisecond)
		}
	}
	answers(1)
	lock, err := os.OpenFile(filepath.Join(r.work, ".tract", "tract.db-lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	answers(15) // the agent gets its answers while the store is locked
	if err := errors.Join(syscall.Flock(int(lock.Fd()), syscall.LOCK_UN), lock.Close()); err != nil {
		t.Fatal(err)
	}
	if out := <-done; !strings.Contains(out, "All steps are done.") || !strings.HasSuffix(out, "<nil>") {
		t.Errorf("the agent says %s", out)
	}
	r.run(0, r.tract, append([]string{"proxy", "run", "--", "claude"}, append(r.c.args, "PLAN:hello please")...)...)
	r.checkRecorded()
}

// TestSDKClients runs a program with the libraries of the providers: each of its conversations is
// on one branch, whether it repeats its past, refers to items of it, or names it.
func TestSDKClients(t *testing.T) {
	r := newClientRun(t, realClient{name: "sdk"})
	script, err := os.ReadFile(filepath.Join("testdata", "clients", "sdk.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(r.work, "sdk.mjs"), string(script))
	if err := os.Symlink(filepath.Join(os.Getenv("TRACT_CLIENTS"), "sdk", "node_modules"), filepath.Join(r.work, "node_modules")); err != nil {
		t.Fatal(err)
	}
	r.env = append(r.env, "TEST_KEY="+testKey)
	if out := r.run(0, r.tract, "proxy", "run", "--strict", "--", "node", "sdk.mjs"); !strings.Contains(out, "all libraries have answered") {
		t.Errorf("the program says %s", out)
	}
	r.checkRecorded()
	want := map[string]int{ // responses on the branch that begins with a question
		"PLAN:list previous": 3, "PLAN:hello conversation": 2, "PLAN:count anthropic": 3, "PLAN:count ai-anthropic": 3,
		"PLAN:count ai-openai": 3, "PLAN:count ai-stored": 3, "PLAN:agent agents": 2, "PLAN:list Look around in this folder.": 2,
	}
	have := map[string]int{}
	for _, branch := range r.branches(`^proxy/`) {
		var rows []struct {
			Role, Summary string
			Origin        struct {
				ResponseID string `json:"response_id"`
			}
		}
		if err := json.Unmarshal([]byte(r.run(0, r.tract, "log", branch, "--json", "--reverse")), &rows); err != nil {
			t.Fatal(err)
		}
		question, responses := "", map[string]bool{}
		for _, row := range rows {
			if question == "" && row.Role == "user" {
				question = row.Summary
			}
			if row.Origin.ResponseID != "" {
				responses[row.Origin.ResponseID] = true
			}
		}
		have[question] += len(responses)
	}
	if !maps.Equal(have, want) || len(r.branches(`^proxy/`)) != len(want) {
		t.Errorf("%d branches with the responses %v, want %v", len(r.branches(`^proxy/`)), have, want)
	}
}

// TestAForkedSession resumes a session of Claude Code under another id: the fork is on a branch of
// its own, which begins where the session was left, and the session goes on on its own.
func TestAForkedSession(t *testing.T) {
	r := newClientRun(t, realClients[0])
	r.ask(false, "count")
	main := r.branches(`^proxy/claude-code/[0-9a-f]{8}$`)
	r.run(0, r.tract, append([]string{"proxy", "run", "--strict", "--", "claude", "--fork-session"}, append(r.c.resume, "PLAN:parallel please")...)...)
	r.checkRecorded()
	all := r.branches(`^proxy/claude-code/[0-9a-f]{8}$`)
	if len(main) != 1 || len(all) != 2 {
		t.Fatalf("branches %q, and %q with the fork", main, all)
	}
	fork := all[0]
	if fork == main[0] {
		fork = all[1]
	}
	if out := r.run(0, r.tract, "log", fork); !strings.Contains(out, "Forked:") || !strings.Contains(out, "a.txt has three lines.") || !strings.Contains(out, "One and two.") {
		t.Errorf("the fork is\n%s", out)
	}
	if out := r.run(0, r.tract, "log", main[0]); strings.Contains(out, "One and two.") {
		t.Errorf("the session is\n%s", out)
	}
}

// TestACompactedSession has Claude Code replace its conversation by a summary: what follows is
// linked to what it replaced.
func TestACompactedSession(t *testing.T) {
	r := newClientRun(t, realClients[0])
	r.ask(false, "count")
	r.run(0, r.tract, append([]string{"proxy", "run", "--strict", "--", "claude"}, append(r.c.resume, "/compact")...)...)
	r.ask(true, "parallel")
	r.checkRecorded()
	found := false
	for _, branch := range r.branches(`^proxy/claude-code/`) {
		found = found || strings.Contains(r.run(0, r.tract, "log", branch), "Follows:")
	}
	if !found {
		t.Errorf("no branch of %q follows another", r.branches(`.`))
	}
}

// TestAFullStore has no room for the store while an agent works: the agent notices nothing, what
// was lost is told, and with room again everything is recorded.
func TestAFullStore(t *testing.T) {
	r := newClientRun(t, realClients[0])
	folder := filepath.Join(r.work, ".tract")
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", folder).CombinedOutput(); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", folder).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	r.run(0, r.tract, "init")
	ballast := filepath.Join(folder, "ballast")
	_ = os.WriteFile(ballast, make([]byte, 5<<20), 0o600) // as much as there is room for
	out := r.run(0, r.tract, append([]string{"proxy", "run", "--", "claude"}, append(r.c.args, "PLAN:count please")...)...)
	if !strings.Contains(out, "a.txt has three lines.") || !regexp.MustCompile(`not recorded|wait in the spool`).MatchString(out) {
		t.Errorf("with a full store:\n%s", out)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	before := len(r.provider.Sent())
	if out := r.ask(false, "parallel"); !strings.Contains(out, "One and two.") {
		t.Errorf("with room again: %s", out)
	}
	found := r.recorded()
	for _, body := range r.provider.Sent()[before:] {
		if id := responseID.FindSubmatch(body); id != nil && found[string(id[1])] == 0 {
			t.Errorf("response %s is not recorded", id[1])
		}
	}
	if out := r.run(0, r.tract, "fsck"); strings.Contains(out, "damage:") {
		t.Errorf("fsck: %s", out)
	}
}
