package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/llmtest"
	"github.com/tract-vcs/tract/priority"
)

// evil is text that would take over a terminal, and that writes lines of tract's own.
// Every other hostile text in this file begins with it.
const evil = "E\x1b[95;41mred\x1b]0;title\a\u009b2J\x9b2J\x7f\x08\u202eright\u2066\u200b\u200d\U000e0041\x00\rover\r\n" + forged

// forged are lines as tract writes them.
const forged = "\ntract: error: forged\ntract: hint: forged\n[main 1234567] forged\nOn branch forged\n"

// evilWords is evil where the text itself is what is shown, in which lines may be what
// they like.
var evilWords = strings.ReplaceAll(evil, "forged", "words")

// evilLines are command lines that show more of the stored fields than everyCommand does.
// A line that begins with "@" runs on a history whose last tool call waits for its result.
var evilLines = [][]string{
	{"@status"},
	{"@chat"},
	{"@chat", "Hello"},
	{"@user", "Hello"},
	{"@check", "--for", "chat"},
	{"@tool-result", "nothing", "x"},
	{"@undo"},
	{"@compile"},
	{"@__complete", "tool-result", ""},
	{"__complete", "branch", ""},
	{"__complete", "switch", ""},
	{"__complete", "rescue", "show", ""},
	{"branch", "--sort=-time"},
	{"compile"},
	{"compile", "--for", "chat"},
	{"compile", "--for", "messages", "--json"},
	{"decode", "response.json"},
	{"decode", "response.json", "--replay"},
	{"decode", "response.json", "--json"},
	{"diff", "HEAD~9", "HEAD"},
	{"generate", "--dry-run"},
	{"generate", "--json"},
	{"generate", "--jsonl"},
	{"-v", "generate"},
	{"cat-file", "HEAD"},
	{"grep", "E"},
	{"grep", "--json", "E"},
	{"log", "--oneline"},
	{"log", "--graph"},
	{"log", "-p"},
	{"log", "--json"},
	{"show", "reply"},
	{"replay", "reply"},
	{"reasoning", "show", "reply"},
	{"rescue", "show", "RESCUED"},
	{"rescue", "take", "RESCUED", "--branch", "other", "--new"},
	{"config", "get", "model", "--show-origin"},
	{"profile", "show", "p", "--json"},
	{"merge", "waits", "--dry-run"},
	{"compress", "reply..HEAD", "--dry-run"},
	{"show", "HEAD", "--json"},
	{"tag"},
	{"why", "reply", "--prompt"},
	{"why", "reply"},
	{"usage", "--json"},
}

// sayWords are the commands whose output is the text of a block, so that it may begin a
// line of its own.
var sayWords = []string{"cat-file", "chat", "decode", "edit", "generate", "replay", "__complete"}

// TestStoredTextCannotControlTerminal runs every command there is on a terminal, in a store
// whose every field would like to control it, and with an argument that would.
func TestStoredTextCannotControlTerminal(t *testing.T) {
	checkComplete(t, everyCommand)
	e := newEvil(t)
	if shown, want := e.tract("--branch", "waits", "status"), `; tract tool-result $'E\033[95;41mred\033]0;title\007`; !strings.Contains(shown, want) {
		t.Errorf("status shows no %s: %s", want, shown)
	}
	lines := append(slices.Clone(evilLines), everyCommand...)
	root := newRoot(newApp(strings.NewReader(""), io.Discard, io.Discard))
	for _, args := range everyCommand {
		if cmd, _, err := root.Find(args); err == nil && len(args) > 0 {
			lines = append(lines, append(strings.Fields(cmd.CommandPath())[1:], evilArgument))
		}
	}
	lines = append(lines, []string{evilArgument}, []string{"log", "--" + evilArgument}, []string{"--branch", evilArgument, "log"}, []string{"--dir", evilArgument, "log"}, []string{"help", evilArgument})
	seen := map[string]bool{}
	for _, args := range lines {
		if line := strings.Join(args, " "); !seen[line] {
			seen[line] = true
			e.check(args)
		}
	}
}

// evilLine is evil as a setting can be: one line without control characters.
var evilLine = strings.Map(func(r rune) rune {
	if r < ' ' || 0x7f <= r && r < 0xa0 {
		return -1
	}
	return r
}, evil)

// evilArgument is evil as an argument of a program can be.
var evilArgument = strings.ReplaceAll(evil, "\x00", "")

// evilStore is a store whose every field is evil.
type evilStore struct {
	t       *testing.T
	dir     string
	rescued string // the name of a reply that broke off
}

func newEvil(t *testing.T) *evilStore {
	t.Helper()
	for name, value := range map[string]string{
		"EDITOR": "true", "VISUAL": "", "TRACT_EDITOR": "", "TRACT_API_KEY": "k", "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": "", "TRACT_DIR": "", "TMPDIR": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	answer := `{"id":` + quoted(evil) + `,"model":` + quoted(evil) + `,"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","reasoning_content":` + quoted(evilWords) +
		`,"content":` + quoted(evilWords) + `,"tool_calls":[{"id":` + quoted(evil) + `,"type":"function","function":{"name":` + quoted(evil) + `,"arguments":` + quoted(evil) + `}}]}}]}`
	script := make([]llmtest.Exchange, 100)
	for i := range script {
		script[i].Body = answer
		switch i % 4 {
		case 0:
			script[i] = llmtest.Exchange{Chunks: chatAnswer(withoutQuotes(evilWords), withoutQuotes(evilWords))[:2], Cut: true}
		case 3:
			script[i] = llmtest.Exchange{Status: 400, Body: `{"error":{"message":` + quoted(evil) + `,"type":` + quoted(evil) + `}}`}
		}
	}
	server, err := llmtest.Serve(script...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	e := &evilStore{t: t, dir: t.TempDir()}
	e.write(".config/tract/config.toml", "provider = 'chat'\nmodel = "+asTOML(evilLine)+"\nbase_url = '"+server.URL()+"/v1'\nuser.name = "+asTOML(evilLine)+"\n")
	e.write("log.json", `[{"role":"user","content":`+quoted(evilWords)+`}]`)
	e.write("response.json", answer)
	e.tract("init")
	e.tract("chat", "Hello") // whose answer breaks off
	e.tract("generate")
	e.fill()
	e.write(".tract/BISECT", "start\ngood "+evil)
	e.write(".tract/profiles/p.toml", "model = "+asTOML(evilLine)+"\n")
	return e
}

// withoutQuotes is text as a part of a string of JSON.
func withoutQuotes(text string) string { return strings.Trim(quoted(text), `"`) }

// asTOML is text as a string of TOML, in escapes where it has to be.
func asTOML(text string) string {
	var b strings.Builder
	for _, r := range text {
		fmt.Fprintf(&b, `\U%08x`, r)
	}
	return `"` + b.String() + `"`
}

func (e *evilStore) write(name, text string) {
	e.t.Helper()
	path := filepath.Join(e.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		e.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

func (e *evilStore) tract(args ...string) string {
	e.t.Helper()
	return onTerminal(e.t, e.dir, args...).left()
}

// fill makes the branch main, which is whole, and the branch waits, whose last tool call
// waits for its result.
func (e *evilStore) fill() {
	e.t.Helper()
	ctx := e.t.Context()
	must := func(err error) {
		e.t.Helper()
		if err != nil {
			e.t.Fatal(err)
		}
	}
	repo, err := tract.Open(ctx, "bolt:"+filepath.Join(e.dir, ".tract"), tract.OpenOptions{Author: evil})
	must(err)
	defer repo.Close()
	rescues, err := repo.Rescues(ctx)
	if err != nil || len(rescues) != 1 {
		e.t.Fatalf("%d replies are rescued, %v", len(rescues), err)
	}
	e.rescued = rescues[0].Name
	b := repo.Branch("main")
	operation := tract.AsOperation(ctx, evil)
	must(repo.Tag(operation, "reply", "main"))
	said := tract.AppendOptions{Label: evil, Meta: map[string]string{"k": evil}, Author: evil}
	keys := 0
	add := func(blocks ...content.Block) {
		e.t.Helper()
		for _, block := range blocks {
			keys++
			said.Key = fmt.Sprint(evil, keys)
			_, err := b.Append(tract.AsOperation(ctx, evil), []content.Block{block}, said)
			must(err)
		}
	}
	wire := content.Form{Dialect: "chat", ID: evil, Type: evil, Seal: content.Seal{Type: content.Signature, Data: evil, Minted: evil}}.Wire()
	add(
		content.ToolResult{CallID: strings.ToValidUTF8(evil, "\ufffd"), Name: evil, Text: evilWords},
		content.Text{Of: content.KindSystem, Name: evil, Text: evilWords},
		content.Text{Of: content.KindArtifact, Name: evil, Text: evilWords},
		content.Media{Of: content.KindImage, MediaType: evil, Name: evil, URL: "https://example.org/" + evil},
		content.User(evilWords),
		content.Reasoning{Text: evilWords, Source: evil, Wire: wire},
		content.ToolCall{CallID: evil, Name: evil, Arguments: evil},
	)
	_, err = b.Fork(operation, "waits", "main")
	must(err)
	add(content.ToolResult{CallID: evil, Name: evil, Text: evilWords, IsError: true})
	_, err = b.AppendResponse(ctx, &llm.Response{
		Head:   llm.Head{Model: evil, Finish: evil, Usage: content.Usage{Input: 3, Output: 4, Reasoning: 2}},
		From:   llm.Address{Provider: evil, Dialect: "chat", Model: evil, Endpoint: evil},
		Blocks: []content.Block{content.Reasoning{Text: evilWords, Wire: wire}, content.Assistant(evilWords)},
	}, tract.AppendOptions{Label: evil, Meta: said.Meta, Author: evil})
	must(err)
	add(content.User(evilWords + "?"))
	_, err = b.Annotate(operation, "main~1", priority.Pinned, evil)
	must(err)
	_, err = b.Edit(ctx, "main~3", evilWords+"!", tract.EditOptions{Label: evil, Meta: said.Meta, Author: evil})
	must(err)
	must(b.Describe(operation, evil))
}

// check runs a command in a copy of the store.
func (e *evilStore) check(args []string) {
	e.t.Helper()
	dir := e.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(e.dir)); err != nil {
		e.t.Fatal(err)
	}
	run := slices.Clone(args)
	for i := range run {
		run[i] = strings.ReplaceAll(run[i], "RESCUED", e.rescued)
	}
	if len(run) > 0 && strings.HasPrefix(run[0], "@") {
		run[0] = run[0][1:]
		run = append([]string{"--branch", "waits"}, run...)
	}
	shown := onTerminal(e.t, dir, run...).left()
	if why := controls(shown); why != "" {
		e.t.Errorf("tract %+q lets %s: %+q", args, why, shown)
	}
	for line := range strings.SplitSeq(unpaintedText(shown), "\r\n") {
		for begin := range strings.SplitSeq(strings.TrimSpace(forged), "\n") {
			if strings.HasPrefix(line, begin) {
				e.t.Errorf("tract %+q shows the line %+q", args, line)
			}
			own := len(run) > 0 && slices.ContainsFunc(sayWords, func(word string) bool { return slices.Contains(run, word) })
			if strings.HasPrefix(line, strings.ReplaceAll(begin, "forged", "words")) && !own {
				e.t.Errorf("tract %+q shows a text without an indent: %+q", args, line)
			}
		}
	}
}

// ownEscapes are those that tract writes: colours, the question for the background, what
// takes away a line of progress, and what its line editor needs.
var ownEscapes = regexp.MustCompile(`\x1b\[[0-9;]*m|\x1b\]11;\?\x1b\\|\x1b\[c|\r\x1b\[K|\x1b\[\?2004[hl]`)

func unpaintedText(shown string) string { return ownEscapes.ReplaceAllString(shown, "") }

// controls says what in the output of a command could control a terminal, or hide.
func controls(shown string) string {
	if strings.Contains(shown, "\x1b[95;41m") {
		return "a stored colour through"
	}
	rest := strings.ReplaceAll(unpaintedText(shown), "\r\n", "\n")
	for i, r := range rest {
		switch {
		case r == '\n', r == '\t':
		case r == utf8.RuneError && !strings.HasPrefix(rest[i:], "\ufffd"):
			return "a byte through that is not UTF-8"
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			return fmt.Sprintf("%U through", r)
		}
	}
	return ""
}
