package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/tract-vcs/tract/llm/llmtest"
)

// patience is longer than anything takes here on a busy machine: what takes longer
// waits for something that never comes.
const patience = 2 * time.Minute

// seenCommit is a commit as another process wrote it.
type seenCommit struct {
	ID, Kind string
}

// TestFollowSeesAnotherProcess lets one process ask, again and again, while another follows
// the log: neither fails, and every commit is seen, in order.
func TestFollowSeesAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	command(t, codeOK, "init", dir)
	follow(t, []string{"--dir", dir}, []string{"--dir", dir})
}

// follow is the test with the flags that name the store, for the follower and for the writer.
func follow(t *testing.T, reads, writes []string) {
	t.Helper()
	const rounds = 8
	var script []llmtest.Exchange
	for range rounds {
		script = append(script, llmtest.Exchange{Body: `{"id":"r","model":"m","choices":[{"index":0,"message":{"role":"assistant","reasoning":"a thought","content":"An answer."},"finish_reason":"stop"}]}`})
	}
	server := llmtest.Start(t, script...)

	follower := exec.CommandContext(t.Context(), "tract", append(reads, "log", "--follow", "--jsonl")...)
	follower.Stderr = os.Stderr
	out, err := follower.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follower.Start(); err != nil {
		t.Fatal(err)
	}
	seen := make(chan seenCommit, 100)
	go watch(t, out, seen)

	var want []string
	for range rounds {
		said := process(t, append(writes, "user", "Why?", "--json")...)
		process(t, append(writes, "generate", "--provider", "chat", "--model", "m", "--base-url", server.URL()+"/v1")...)
		want = append(want, said, "reasoning", "assistant")
	}
	var kinds []string
	for range 3 * rounds {
		select {
		case c, ok := <-seen:
			if !ok {
				t.Fatalf("the follower ended after %d commits", len(kinds))
			}
			kinds = append(kinds, c.Kind)
		case <-time.After(patience):
			t.Fatalf("only %d commits were seen", len(kinds))
		}
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("seen: %v\nwant: %v", kinds, want)
	}
	if err := follower.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for c := range seen { // to the end of what it writes
		t.Errorf("one more: %s %s", c.Kind, c.ID)
	}
	if err := follower.Wait(); err != nil {
		t.Errorf("the follower: %v", err)
	}
}

// watch notes what a follower writes, line by line.
func watch(t *testing.T, out io.Reader, seen chan<- seenCommit) {
	defer close(seen)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var c seenCommit
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Errorf("%s: %v", lines.Bytes(), err)
		}
		seen <- c
	}
}

// process runs tract as a process of its own and gives the kind of the commit
// that it says it made, if any.
func process(t *testing.T, args ...string) (kind string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "tract", args...).Output()
	if err != nil {
		t.Fatalf("tract %v: %v", args, err)
	}
	var c seenCommit
	if err := json.Unmarshal(out, &c); err != nil {
		return ""
	}
	return c.Kind
}
