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

// TestTour runs docs/tour.md as a person would who types it in, one session from the
// first line to the last, and holds what it prints to what the page shows: ids and
// times aside, and a line "…" stands for any lines. The models are played. -update
// writes the page anew.
func TestTour(t *testing.T) {
	t.Parallel()
	const page = "../../docs/tour.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	server := llmtest.Start(t,
		plays("small", `"reasoning_content":"Packing depends on the weather. I look it up.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo, Minnesota\"}"}}]`, "tool_calls"),
		plays("small", `"content":"Shorts and sunscreen."`, "stop"),
		plays("large", `"reasoning_content":"Oslo in Norway is meant. I look up its weather.","tool_calls":[{"id":"call_2","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo, Norway\"}"}}]`, "tool_calls"),
		plays("large", `"content":"A raincoat and a warm sweater."`, "stop"),
		plays("small", `"content":"Yes: it may rain, so take the raincoat to the fjord."`, "stop"),
	)
	dir := t.TempDir()
	env := append(os.Environ(), "HOME="+dir, "USER=ada", "TZ=UTC", "LC_ALL=C.UTF-8", "TRACT_BASE_URL="+server.URL()+"/v1", "TRACT_MODEL=small", "NO_COLOR=1")
	var out strings.Builder
	for _, part := range sessions(string(text)) {
		if part.command == "" {
			out.WriteString(part.text)
			continue
		}
		cmd := exec.Command("sh", "-c", part.command)
		cmd.Dir, cmd.Env = dir, env
		said, _ := cmd.CombinedOutput() // a command of the page may be refused: the page shows it
		out.WriteString("$ " + strings.ReplaceAll(part.command, "\n", "\n> ") + "\n")
		got := strings.ReplaceAll(string(said), dir, "/home/ada/trip")
		if alike(part.text, got) {
			got = part.text
		} else if !*update {
			t.Errorf("%s prints\n%s\nwant\n%s", part.command, got, part.text)
		}
		out.WriteString(got)
	}
	if *update {
		if err := os.WriteFile(filepath.FromSlash(page), []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(server.Requests()); n != 5 {
		t.Errorf("the models were asked %d times", n)
	}
}

// plays is the answer of a model.
func plays(model, message, finish string) llmtest.Exchange {
	return llmtest.Exchange{Body: `{"id":"chatcmpl-1","model":"` + model + `","choices":[{"index":0,"finish_reason":"` + finish +
		`","message":{"role":"assistant",` + message + `}}],"usage":{"prompt_tokens":40,"completion_tokens":12}}`}
}

// part is a piece of the page: words, or a command and what it prints.
type part struct{ command, text string }

// sessions cuts a page into its commands, which are the lines after "$ " in fenced
// blocks of kind console, what they print, and the words around them.
func sessions(page string) (parts []part) {
	inside := false
	parts = append(parts, part{})
	for line := range strings.Lines(page) {
		last := &parts[len(parts)-1]
		command, begins := strings.CutPrefix(line, "$ ")
		more, goesOn := strings.CutPrefix(line, "> ")
		switch {
		case !inside || strings.HasPrefix(line, "```"):
			if inside && strings.HasPrefix(line, "```") {
				parts = append(parts, part{})
				last = &parts[len(parts)-1]
			}
			inside = strings.HasPrefix(line, "```console")
			last.text += line
		case begins:
			parts = append(parts, part{command: strings.TrimSuffix(command, "\n")})
		case goesOn && last.text == "":
			last.command += "\n" + strings.TrimSuffix(more, "\n")
		default:
			last.text += line
		}
	}
	return parts
}

var unsteady = []*regexp.Regexp{
	regexp.MustCompile(`\b[0-9a-f]{64}\b`), regexp.MustCompile(`\b[0-9a-f]{7}\b`), regexp.MustCompile(`\d{4}-\d\d-\d\d[ T][0-9:.]+Z?`),
	regexp.MustCompile(`\w{3} \w{3} \d+ \d\d:\d\d:\d\d \d{4} [+-]\d{4}`), regexp.MustCompile(`\d+\.\d s\b`),
	regexp.MustCompile(`\b\d+ms\b`), regexp.MustCompile(`127\.0\.0\.1:\d+`),
}

// alike compares what a page shows with what was printed.
func alike(want, got string) bool {
	for _, r := range unsteady {
		want, got = r.ReplaceAllString(want, "~"), r.ReplaceAllString(got, "~")
	}
	pieces := strings.Split(want, "…\n")
	if len(pieces) == 1 {
		return want == got
	}
	for i, piece := range pieces {
		at := strings.Index(got, piece)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		got = got[at+len(piece):]
	}
	return got == "" || pieces[len(pieces)-1] == ""
}
