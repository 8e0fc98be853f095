package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/llm/llmtest"
)

// TestReadme runs the five minutes of README.md as a person would who types them in, line
// by line. Every command has to work, and none may warn. The models are played.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "## Five minutes")
	_, block, open := strings.Cut(section, "```sh\n")
	block, _, closed := strings.Cut(block, "```\n")
	if !found || !open || !closed {
		t.Fatal("README.md has no five minutes")
	}
	server := llmtest.Start(t,
		llmtest.Exchange{Path: "/v1/messages", Chunks: messagesStream("msg_1", 20, 30, thinkingBlock("Short waves scatter most."), textBlock("Because blue light scatters most."), "end_turn")},
		llmtest.Exchange{Path: "/v1/messages", Chunks: messagesStream("msg_2", 60, 10, nil, textBlock("Mend a word"), "end_turn")},
		llmtest.Exchange{Path: "/v1/messages", Chunks: messagesStream("msg_3", 80, 10, nil, textBlock("Like this, in a session."), "end_turn")},
		llmtest.Exchange{Path: "/v1/messages", Chunks: messagesStream("msg_4", 80, 20, thinkingBlock("The way is longer."), textBlock("Blue is scattered away on a long way."), "end_turn")},
		llmtest.Exchange{Path: "/v1/messages", Chunks: messagesStream("msg_5", 80, 20, nil, textBlock("Only red is left."), "end_turn")},
	)
	dir, printsDiff := t.TempDir(), false
	for name, value := range map[string]string{
		"HOME": dir, "USER": "ada", "XDG_CONFIG_HOME": "", "TRACT_BASE_URL": server.URL() + "/v1", "PAGER": "cat", "NO_COLOR": "1", "GIT_DIR": filepath.Join(dir, ".git"),
	} {
		t.Setenv(name, value)
	}
	if _, err := exec.LookPath("git"); err == nil { // without it, git diff gives nothing
		script := "git init -q && echo old >note.txt && git add note.txt && echo new >note.txt"
		setup := exec.CommandContext(t.Context(), "sh", "-c", script)
		if setup.Dir = dir; setup.Run() != nil {
			t.Fatal("git init")
		}
		printsDiff = true
	}
	printed := map[string]string{}
	for line := range strings.Lines(block) {
		command, _, _ := strings.Cut(strings.TrimSpace(line), "  #")
		if command = strings.TrimSpace(command); command == "" {
			continue
		}
		if countsBack.MatchString(command) {
			t.Errorf("%s names a commit by a number, which the next one shifts", command)
		}
		if name, value, is := strings.Cut(strings.TrimPrefix(command, "export "), "="); is && strings.HasPrefix(command, "export ") {
			t.Setenv(name, value)
			continue
		}
		if command == "tract chat" {
			c := onTerminal(t, dir, "chat")
			c.until("main> ")
			c.keys("How do I go on?\r")
			c.until("Like this, in a session.")
			c.until("main> ")
			c.keys("/quit\r")
			c.ended()
			continue
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil || regexp.MustCompile(`tract: (warning|error|hint)`).Match(out) {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
		printed[command] = string(out)
	}
	for command, want := range map[string]string{
		`tract edit ':/Why is the sky' "Why is the sky blue at noon?"`: `edited user [0-9a-f]{7}: Why is the sky blue\?`,
		"tract skip ':/Write a commit'":                                `skip [0-9a-f]{7}`,
		"tract diff main@{1}":                                          `Why is the sky blue at noon\?`,
		"tract switch -c try-2 'HEAD^{turn}~1'":                        `HEAD is on branch try-2`,
		"tract grep blue --kind assistant":                             `Because blue light`,
		"tract bisect run sh -c '! grep -q dusk'":                      `is the first bad commit(?s:.*)red at dusk`,
		"tract undo": `Undid "compress"`,
	} {
		if out, ran := printed[command]; !ran || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s (in README.md: %t) prints\n%s\nwant %s", command, ran, out, want)
		}
	}
	asked := server.Requests()
	if len(asked) != 5 {
		t.Fatalf("the models were asked %d times, want 5", len(asked))
	}
	if printsDiff && !strings.Contains(string(asked[1].Body), `+new\n\n\nWrite a commit message`) {
		t.Errorf("what came through the pipe is not sent first: %s", asked[1].Body)
	}
}
