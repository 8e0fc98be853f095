package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/llm/llmtest"
)

// sinks are commands that run a program, ask a server or store what was typed, as the
// settings say.
var sinks = [][]string{
	{"log"}, {"user"}, {"edit", "HEAD"}, {"generate"}, {"chat", "Hello"}, {"profile", "load", "p"}, {"log", "-p"}, {"generate"}, {"user", hostileSecret}, {"doctor"}, {"config", "list", "--show-origin"},
}

// hostileSecret is masked where the user says so.
const hostileSecret = "The token is ghp_aB3dE6aB3dE6aB3dE6aB3dE6aB3dE6aB3dE6."

// everyCommand has a line for each command that can be run.
var everyCommand = [][]string{
	{},
	{"annotate", "HEAD", "pinned"},
	{"assistant", "An answer."},
	{"backup", "copy"},
	{"bisect"},
	{"bisect", "start", "HEAD", "HEAD~2"},
	{"bisect", "log"},
	{"bisect", "skip"},
	{"bisect", "good"},
	{"bisect", "bad"},
	{"bisect", "run", "true"},
	{"bisect", "reset"},
	{"blame"},
	{"branch"},
	{"branch", "--all"},
	{"cat-file", "-p", "HEAD"},
	{"chat"},
	{"chat", "Hello"},
	{"check", "--for", "chat"},
	{"checkout", "-b", "side"},
	{"cherry-pick", "HEAD~1"},
	{"commit", "--kind", "note"},
	{"compile", "--explain"},
	{"completion", "bash"},
	{"config"},
	{"config", "get", "provider"},
	{"config", "list"},
	{"config", "set", "model", "m"},
	{"config", "trust", "--dry-run"},
	{"config", "unset", "model"},
	{"decode", "log.json"},
	{"demo", "."},
	{"diff", "HEAD~1", "HEAD"},
	{"doctor"},
	{"edit", "HEAD"},
	{"edit", "HEAD", "--source", "HEAD"},
	{"fsck"},
	{"gc"},
	{"generate"},
	{"grep", "Hello"},
	{"hash-object", "x"},
	{"import", "log.json"},
	{"init"},
	{"log"},
	{"man", "log"},
	{"merge", "main"},
	{"merge-base", "main", "side"},
	{"op"},
	{"op", "log"},
	{"op", "show"},
	{"pin", "HEAD"},
	{"profile"},
	{"profile", "list"},
	{"profile", "show", "p"},
	{"profile", "load", "p"},
	{"generate"},
	{"profile", "save", "q"},
	{"profile", "load", "q"},
	{"profile", "delete", "q"},
	{"reasoning"},
	{"reasoning", "add", "Hm."},
	{"reasoning", "export"},
	{"reasoning", "list"},
	{"proxy", "--listen", "nowhere"},
	{"proxy", "env"},
	{"proxy", "run", "--", "true"},
	{"proxy", "status"},
	{"purge", "--reasoning"},
	{"reasoning", "show"},
	{"reasoning", "stats"},
	{"recover", ".tract", "saved"},
	{"reflog"},
	{"replay"},
	{"rescue"},
	{"rescue", "list"},
	{"rescue", "show", "x"},
	{"rescue", "take", "x"},
	{"rescue", "drop", "x"},
	{"reset", "HEAD~1"},
	{"rev-parse", "HEAD"},
	{"revert", "HEAD"},
	{"scan"},
	{"show"},
	{"skip", "HEAD"},
	{"status"},
	{"switch", "main"},
	{"system"},
	{"tag", "v1"},
	{"tool-call", "c1", "look"},
	{"tool-result", "c1"},
	{"undo"},
	{"redo"},
	{"usage"},
	{"user"},
	{"user", hostileSecret},
	{"verify"},
	{"version"},
	{"why"},
	{"compress", "HEAD"},
	{"expand", "HEAD"},
	{"purge", "HEAD"},
}

// TestHostileFolders puts the files of each folder of testdata/hostile into a store and
// runs commands on a terminal: those that matter in each, and every command there is in
// the folder that has everything. One folder is trusted in the end, which shows that what
// is watched for would be seen.
func TestHostileFolders(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join("testdata", "hostile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			h := newHostile(t, e.Name())
			lines := sinks
			if e.Name() == "everything" {
				lines = everyCommand
				checkComplete(t, lines)
			}
			for _, args := range lines {
				h.run(args...)
				h.checkNothingHappened(args)
			}
			h.checkMasked()
			if e.Name() != "acceptable" {
				return
			}
			for _, args := range [][]string{{"config", "trust"}, {"log"}, {"user"}, {"generate"}} {
				h.run(args...)
			}
			if ran, _ := os.ReadDir(h.canaries); len(ran) == 0 || h.asked.Load() == 0 {
				t.Errorf("of a folder that is trusted %d programs were run, and its server was asked %d times", len(ran), h.asked.Load())
			}
		})
	}
}

// checkComplete fails for commands that no line runs.
func checkComplete(t *testing.T, lines [][]string) {
	t.Helper()
	root := newRoot(newApp(strings.NewReader(""), io.Discard, io.Discard))
	ran := map[*cobra.Command]bool{}
	for _, args := range lines {
		cmd, _, err := root.Find(args)
		if err != nil {
			t.Errorf("%v: %v", args, err)
		}
		ran[cmd] = true
	}
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		if cmd.Runnable() && !ran[cmd] {
			t.Errorf("no line of everyCommand runs %s", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	look(root)
}

// hostile is a store in a folder of somebody else.
type hostile struct {
	t        *testing.T
	name     string
	dir      string // the project, and the home of the user
	canaries string // where programs leave their traces
	evil     *httptest.Server
	asked    atomic.Int64 // the evil server
	own      *llmtest.Server
}

func newHostile(t *testing.T, name string) *hostile {
	t.Helper()
	for variable, value := range map[string]string{
		"EDITOR": "true", "VISUAL": "", "OPENAI_API_KEY": "sk-canary", "ANTHROPIC_API_KEY": "sk-canary", "TRACT_API_KEY": "sk-canary",
		"XDG_CONFIG_HOME": "", "XDG_DATA_HOME": "", "TRACT_DIR": "", "TMPDIR": t.TempDir(),
	} {
		t.Setenv(variable, value)
	}
	h := &hostile{t: t, name: name, dir: t.TempDir(), canaries: t.TempDir()}
	h.evil = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { h.asked.Add(1) }))
	t.Cleanup(h.evil.Close)
	script := make([]llmtest.Exchange, 100)
	for i := range script {
		script[i].Body = `{"id":"r","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"An answer."}}]}`
	}
	var err error
	if h.own, err = llmtest.Serve(script...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.own.Close() })
	own := filepath.Join(h.dir, ".config", "tract", "config.toml")
	err = errors.Join(os.MkdirAll(filepath.Dir(own), 0o700), os.WriteFile(filepath.Join(h.dir, "log.json"), []byte(`[{"role":"user","content":"Hello"}]`), 0o600),
		os.WriteFile(own, []byte("provider = 'chat'\nmodel = 'm'\nbase_url = '"+h.own.URL()+"/v1'\nsecrets.mask = 'all'\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init"}, {"user", "Hello"}, {"assistant", "Hello yourself"}, {"user", "And now?"}} {
		h.run(args...)
	}
	h.furnish()
	return h
}

// furnish puts what is hostile into the folder.
func (h *hostile) furnish() {
	h.t.Helper()
	from, to := filepath.Join("testdata", "hostile", h.name), filepath.Join(h.dir, ".tract")
	fill := strings.NewReplacer("CANARY", "touch "+h.canaries+"/$$ #", "EVIL", h.evil.URL, "STORE", to)
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		there := filepath.Join(to, rel)
		return errors.Join(os.MkdirAll(filepath.Dir(there), 0o700), os.WriteFile(there, []byte(fill.Replace(string(text))), 0o600))
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// run runs a command on a terminal, where nothing more is typed.
func (h *hostile) run(args ...string) {
	h.t.Helper()
	onTerminal(h.t, h.dir, args...).left()
}

// left says again and again that nothing more is typed, until the program ends, and gives
// what it showed.
func (c *terminal) left() string {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := range c.read {
			c.said.Write(b)
		}
	}()
	for {
		select {
		case <-done:
			_ = c.cmd.Wait()
			_ = c.pty.Close()
			return c.said.String()
		case <-time.After(100 * time.Millisecond):
			_, _ = c.pty.WriteString("\x04")
		}
	}
}

func (h *hostile) checkNothingHappened(args []string) {
	h.t.Helper()
	if ran, err := os.ReadDir(h.canaries); len(ran) != 0 || err != nil {
		h.t.Fatalf("tract %s: the folder's program was run, %v", strings.Join(args, " "), err)
	}
	if n := h.asked.Load(); n != 0 {
		h.t.Fatalf("tract %s: the folder's server was asked %d times", strings.Join(args, " "), n)
	}
	for _, q := range h.own.Requests() {
		if q.Path != "/v1/chat/completions" || bytes.Contains(q.Body, []byte("evil")) || q.Header.Get("X-Evil") != "" || strings.Contains(q.Header.Get("Authorization"), "evil") {
			h.t.Fatalf("tract %s: the request is not the user's: %s %v %s", strings.Join(args, " "), q.Path, q.Header, q.Body)
		}
	}
}

// checkMasked looks for the secret in all that was said.
func (h *hostile) checkMasked() {
	h.t.Helper()
	if r := tractIn(h.t, h.dir, nil, "grep", "ghp_aB3dE6"); r.code != codeNo || r.out != "" {
		h.t.Errorf("the secret is stored: exit code %d: %s%s", r.code, r.out, r.err)
	}
	if r := tractIn(h.t, h.dir, nil, "grep", "The token is"); r.code != codeOK {
		h.t.Errorf("what the secret was in is not stored: exit code %d: %s", r.code, r.err)
	}
}
