package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tract-vcs/tract/llm/llmtest"
)

// slow is an answer that begins well and then takes its time.
var slow = llmtest.Exchange{
	Chunks: []string{
		`data: {"id":"r","model":"m","choices":[{"index":0,"delta":{"reasoning_content":"scattering"}}]}` + "\n\n" +
			`data: {"id":"r","model":"m","choices":[{"index":0,"delta":{"content":"Because\n"}}]}` + "\n\n",
		`data: [DONE]` + "\n\n",
	},
	Pace: time.Hour,
}

// TestInterruptKeepsPartialResponse stops a process in the middle of an answer, also by closing its
// terminal: it ends at once with 130, what came is kept and named, and the branch is as
// it was.
func TestInterruptKeepsPartialResponse(t *testing.T) {
	for _, end := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		t.Run(end.String(), func(t *testing.T) { interruptedAnswer(t, end) })
	}
}

func interruptedAnswer(t *testing.T, end os.Signal) {
	dir := t.TempDir()
	command(t, codeOK, "init", dir)
	command(t, codeOK, "user", "Why is the sky blue?", "--dir", dir)
	server := llmtest.Start(t, slow)
	received := make(chan os.Signal, 1)
	signal.Notify(received, end) // a program inherits an ignored signal, such as after nohup, and then ignores it as well
	defer signal.Stop(received)
	ask := exec.CommandContext(t.Context(), "tract", "generate", "--provider", "chat", "--model", "m", "--base-url", server.URL()+"/v1", "--dir", dir)
	var said bytes.Buffer
	ask.Stderr = &said
	out, err := ask.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := ask.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "Because\n" {
		t.Fatalf("the answer begins with %q: %v", line, err)
	}
	if err := ask.Process.Signal(end); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := ask.Wait(); !errors.As(err, &exit) || exit.ExitCode() != codeInterrupted {
		t.Errorf("the process ended with %v: %s", err, &said)
	}
	if !strings.Contains(said.String(), "tract: hint: tract rescue show main/") {
		t.Errorf("it is not said where the reply is: %s", &said)
	}
	if out, _ := command(t, codeOK, "log", "--oneline", "--dir", dir); strings.Count(out, "\n") != 1 {
		t.Errorf("the log is %s", out)
	}
	if kept := rescued(t, dir); len(kept) != 1 || kept[0].Blocks != 2 {
		t.Errorf("rescued: %v", kept)
	}
}

// TestBranchMovesDuringRequest lets somebody else commit while the model answers: the
// reply is not put upon what it did not see, it is kept, and can be taken.
func TestBranchMovesDuringRequest(t *testing.T) {
	dir := t.TempDir()
	command(t, codeOK, "init", dir)
	command(t, codeOK, "user", "Why is the sky blue?", "--dir", dir)
	server := llmtest.Start(t, llmtest.Exchange{
		Check: func(*llmtest.Request) error {
			if out, err := exec.CommandContext(t.Context(), "tract", "user", "Wait!", "--dir", dir).CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		},
		Body: `{"id":"r","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Because."},"finish_reason":"stop"}]}`,
	})
	out, said := command(t, codeBusy, "generate", "--provider", "chat", "--model", "m", "--base-url", server.URL()+"/v1", "--dir", dir, "--json")
	var fault struct {
		Error struct{ Kind, Hint, Rescued string }
	}
	if err := json.Unmarshal([]byte(said), &fault); err != nil {
		t.Fatalf("%s: %v", said, err)
	}
	if e := fault.Error; e.Kind != "moved" || !strings.HasPrefix(e.Rescued, "refs/rescued/main/") || !strings.HasPrefix(e.Hint, "tract rescue take main/") {
		t.Errorf("the error is %s", said)
	}
	if !strings.Contains(out, `"text": "Because."`) || !strings.Contains(out, fault.Error.Rescued) {
		t.Errorf("the reply is %s", out)
	}
	kept := rescued(t, dir)
	if len(kept) != 1 {
		t.Fatalf("rescued: %v", kept)
	}
	command(t, codeBusy, "rescue", "take", kept[0].Name, "--dir", dir)
	command(t, codeOK, "rescue", "take", kept[0].Name, "--here", "--dir", dir)
	if out, _ := command(t, codeOK, "log", "--oneline", "--dir", dir); strings.Count(out, "\n") != 3 || !strings.Contains(out, "~0 (HEAD -> main) assistant: Because.") {
		t.Errorf("the log is %s", out)
	}
}

// rescued is what rescue list gives.
func rescued(t *testing.T, dir string) []rescueJSON {
	t.Helper()
	out, _ := command(t, codeOK, "rescue", "list", "--json", "--dir", dir)
	var list []rescueJSON
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return list
}

// TestUnstorableResponseIsSavedToFile takes the store away while the model answers:
// what came was paid for, and lies in a file that the hint names.
func TestUnstorableResponseIsSavedToFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	command(t, codeOK, "init", dir)
	command(t, codeOK, "user", "Why is the sky blue?", "--dir", dir)
	server := llmtest.Start(t, llmtest.Exchange{
		Check: func(*llmtest.Request) error {
			return os.Rename(filepath.Join(dir, ".tract"), filepath.Join(dir, "away"))
		},
		Body: `{"id":"r","model":"m","choices":[{"index":0,"message":{"role":"assistant","reasoning_content":"scattering","content":"Because."},"finish_reason":"stop"}]}`,
	})
	_, said := command(t, codeNotFound, "generate", "--provider", "chat", "--model", "m", "--base-url", server.URL()+"/v1", "--dir", dir)
	_, path, found := strings.Cut(said, "the response is saved in ")
	if !found {
		t.Fatalf("it is not said where the reply is: %s", said)
	}
	path, _, _ = strings.Cut(strings.TrimSpace(path), ";")
	kept, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(kept, []byte("Because.")) || !bytes.Contains(kept, []byte("scattering")) {
		t.Errorf("the file has %q: %v", kept, err)
	}
	if info, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v", info.Mode())
	}
}

// TestDebugLinesDoNotSplitAnswer: on a terminal, where all goes to one place, no debug
// line is glued to what is shown of an answer, however it ends.
func TestDebugLinesDoNotSplitAnswer(t *testing.T) {
	dir := t.TempDir()
	command(t, codeOK, "init", dir)
	command(t, codeOK, "user", "Why is the sky blue?", "--dir", dir)
	for name, body := range map[string]string{
		"whole":     `data: {"choices":[{"index":0,"delta":{"reasoning_content":"scattering"}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"content":"Rayleigh."},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
		"no text":   `data: {"choices":[{"index":0,"delta":{"reasoning_content":"scattering"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
		"broken":    `data: {"choices":[{"index":0,"delta":{"reasoning_content":"scattering"}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"content":"Ray"}}]}` + "\n\n",
		"one piece": `{"choices":[{"message":{"role":"assistant","content":"Rayleigh.","reasoning_content":"scattering"},"finish_reason":"stop"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			server := llmtest.Start(t, llmtest.Exchange{Body: body})
			var both bytes.Buffer
			run(t.Context(), []string{"chat", "Again?", "-v", "--provider", "chat", "--model", "m", "--base-url", server.URL() + "/v1", "--dir", dir}, strings.NewReader(""), &both, &both)
			lines := 0
			for line := range strings.Lines(both.String()) {
				if at := strings.Index(line, "tract: debug: "); at > 0 {
					t.Errorf("glued: %q", line)
				} else if strings.Contains(line, "reasoning received in reasoning_content") {
					lines++
				}
			}
			if lines != 1 {
				t.Errorf("%d lines about the reasoning:\n%s", lines, both.String())
			}
		})
	}
}
