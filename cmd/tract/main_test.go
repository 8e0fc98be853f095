package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tract-vcs/tract/internal/faulttest"
	"github.com/tract-vcs/tract/llm/llmtest"
)

func TestMain(m *testing.M) {
	if limit := os.Getenv(faultEnv); limit != "" {
		os.Exit(asProgram(limit))
	}
	testscript.Main(inMemory{m}, map[string]func(){
		"tract": func() { os.Exit(mainCode()) },
		"upper": upper,
		"agent": agent,
	})
}

// inMemory runs the tests in folders that are in memory, where the system has such a folder:
// a sync costs nothing there.
type inMemory struct{ *testing.M }

// Run runs the tests.
func (m inMemory) Run() int {
	if dir := faulttest.MemoryDir(); dir != "" {
		defer os.RemoveAll(dir)
		if err := os.Setenv("TMPDIR", dir); err != nil {
			return 1
		}
	}
	return m.M.Run()
}

// upper is an editor for the scripts: it writes a file in capitals.
func upper() {
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = os.WriteFile(os.Args[1], []byte(strings.ToUpper(string(text))), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var update = flag.Bool("update", false, "write what commands print into the scripts that compare it")

// TestScripts runs the stories of testdata/script: what a person types, what
// comes back, and with which exit code.
func TestScripts(t *testing.T) { testscript.Run(t, scriptParams()) }

// scriptParams is how the scripts run, on a store in a folder.
func scriptParams() testscript.Params {
	return testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("USER", "ada")
			e.Setenv("TZ", "UTC")
			e.Setenv("LC_ALL", "C.UTF-8")
			e.Values[served{}] = new(*llmtest.Server)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":    codeIs,
			"refused": refused,
			"plain":   plain,
			"serve":   serve,
			"provide": provide,
			"sent":    sent,
			"json":    jsonHas,
			"damage":  damageFile,
			"refs":    listRefs,
		},
		UpdateScripts:      *update,
		RequireUniqueNames: true,
	}
}

// codeIs runs a command line and checks its exit code: code 3 tract log nope.
func codeIs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	runs(ts, want, args[1:])
}

// runs runs a command line that has to end with an exit code.
func runs(ts *testscript.TestScript, want int, args []string) {
	got := 0
	if err := ts.Exec(args[0], args[1:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%s: %v", args[0], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// listRefs leaves the targets and the names of all refs on stdout.
func listRefs(ts *testscript.TestScript, _ bool, _ []string) {
	runs(ts, 0, []string{"tract", "branch", "--all", "--json"})
	var list []struct{ Ref, Target string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &list))
	for _, ref := range list {
		_, err := fmt.Fprintln(ts.Stdout(), ref.Target, ref.Ref)
		ts.Check(err)
	}
}

// refused runs a command line that has to be refused with an exit code, in good
// manners: nothing on stdout, and one error with one hint at the end of stderr, as
// two lines, or with --json as one object and nothing else.
func refused(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: refused N COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	runs(ts, want, args[1:])
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("stdout is not empty: %s", out)
	}
	said := ts.ReadFile("stderr")
	if slices.Contains(args, "--json") {
		var got map[string]struct {
			Code                int
			Kind, Message, Hint string
		}
		ts.Check(json.Unmarshal([]byte(said), &got))
		if e := got["error"]; len(got) != 1 || e.Code != want || e.Kind == "" || e.Message == "" || e.Hint == "" {
			ts.Fatalf("the error is not whole: %s", said)
		}
		return
	}
	if !refusal.MatchString(said) || strings.Count(said, "tract: error: ") != 1 {
		ts.Fatalf("want one line of an error and one of a hint, have: %s", said)
	}
}

var refusal = regexp.MustCompile(`(?:^|\n)tract: error: .+\ntract: hint: .+\n$`)

// plain runs a command line and leaves on stdout and stderr what it said with
// ids, times and the folder of the script masked, for a golden text.
func plain(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: plain COMMAND...")
	}
	runs(ts, 0, args)
	for _, stream := range []struct {
		w    io.Writer
		text string
	}{{ts.Stdout(), ts.ReadFile("stdout")}, {ts.Stderr(), ts.ReadFile("stderr")}} {
		text := strings.ReplaceAll(stream.text, ts.Getenv("WORK"), "WORK")
		for _, mask := range masks {
			text = mask.of.ReplaceAllString(text, mask.with)
		}
		_, err := io.WriteString(stream.w, text)
		ts.Check(err)
	}
}

var masks = []struct {
	of   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "ID"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "GROUP"},
	{regexp.MustCompile(`\b[0-9a-f]{7}\b`), "id"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`\w{3} \w{3} \d+ \d\d:\d\d:\d\d \d{4} [+-]\d{4}`), "TIME"},
	{regexp.MustCompile(`\d+ \w+ ago`), "N ago"},
	{regexp.MustCompile(`\d+\.\d s\b`), "N s"},
	{regexp.MustCompile(`\d+ KiB`), "N KiB"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "HOST"},
	{regexp.MustCompile(`\bgo\d+\.\S+, ` + runtime.GOOS + "/" + runtime.GOARCH), "GO"},
	{regexp.MustCompile(`\b\d+\.\d+\.\d+(-\w+)?`), "VERSION"},
}

// serve plays answers, one for each request: serve FILE..., where a file may
// have "429:" or another status before its name, and "cut:" when the connection
// is closed in the middle. The base URL is in $BASE.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serve [STATUS:][cut:]FILE...")
	}
	var script []llmtest.Exchange
	for _, arg := range args {
		var x llmtest.Exchange
		for {
			word, rest, ok := strings.Cut(arg, ":")
			if !ok {
				break
			}
			if word == "cut" {
				x.Cut = true
			} else if n, err := strconv.Atoi(word); err == nil {
				x.Status = n
				x.Header = map[string]string{"Retry-After": "0"}
			} else {
				ts.Fatalf("serve %s: %q is no status", arg, word)
			}
			arg = rest
		}
		x.Body = ts.ReadFile(arg)
		script = append(script, x)
	}
	server, err := llmtest.Serve(script...)
	ts.Check(err)
	ts.Defer(func() { _ = server.Close() })
	ts.Setenv("BASE", server.URL()+"/v1")
	*ts.Value(served{}).(**llmtest.Server) = server
}

// served is the key of the server of a script.
type served struct{}

// sent writes the body of the n-th request to a file: sent 2 request.json.
func sent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sent N FILE")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	server := *ts.Value(served{}).(**llmtest.Server)
	if server == nil {
		ts.Fatalf("sent: nothing is served")
	}
	requests := server.Requests()
	if n < 1 || n > len(requests) {
		ts.Fatalf("sent %d: there were %d requests", n, len(requests))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), requests[n-1].Body, 0o600))
}

// jsonHas checks a value in the JSON of a file, stdout or stderr: json stdout
// 0.kind user. A path is member names and indexes; len is the length of what is
// there; a missing value is "". In WANT, \n is a line feed.
func jsonHas(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH WANT")
	}
	var v any
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		ts.Fatalf("%s is no JSON: %v", args[0], err)
	}
	for step := range strings.SplitSeq(args[1], ".") {
		switch at := v.(type) {
		case map[string]any:
			if v = at[step]; step == "len" {
				v = len(at)
			}
		case []any:
			n, err := strconv.Atoi(step)
			switch {
			case step == "len":
				v = len(at)
			case err != nil || n >= len(at):
				v = nil
			default:
				v = at[n]
			}
		default:
			v = nil
		}
	}
	got := ""
	if v != nil {
		got = fmt.Sprint(v)
	}
	if (got == strings.ReplaceAll(args[2], `\n`, "\n")) == neg {
		ts.Fatalf("%s %s is %q", args[0], args[1], got)
	}
}
