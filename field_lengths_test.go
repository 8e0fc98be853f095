package tract_test

import (
	"context"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/internal/importers"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/recorder"
)

// oddNumbers is what may stand in JSON where a count of tokens is expected.
var oddNumbers = []string{
	"0", "-1", "12.0", "1.5", "1e3", "1e18", "1e400", "-1e400", "1099511627777", "4611686018427387903", "4611686018427387904",
	"9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551616", `"7"`, "null", "true", "{}",
}

// usageResponses is a response of each dialect, by the name of a provider. N stands for
// each number of its usage.
var usageResponses = map[string]string{
	"openai responses": `{"id":"r","object":"response","model":"m","status":"completed","output":[{"type":"message","id":"i","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}],"usage":{"input_tokens":N,"output_tokens":N,"total_tokens":N,"input_tokens_details":{"cached_tokens":N},"output_tokens_details":{"reasoning_tokens":N}}}`,
	"deepseek":         `{"id":"r","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":N,"completion_tokens":N,"total_tokens":N,"prompt_tokens_details":{"cached_tokens":N},"completion_tokens_details":{"reasoning_tokens":N}}}`,
	"anthropic":        `{"id":"r","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":N,"output_tokens":N,"cache_read_input_tokens":N,"cache_creation_input_tokens":N,"iterations":[{"input_tokens":N,"output_tokens":N},{"input_tokens":N,"output_tokens":N}]}}`,
	"google":           `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"finishReason":"STOP"}],"responseId":"r","modelVersion":"m","usageMetadata":{"promptTokenCount":N,"candidatesTokenCount":N,"thoughtsTokenCount":N,"toolUsePromptTokenCount":N,"cachedContentTokenCount":N}}`,
	"bedrock":          `{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":N,"outputTokens":N,"cacheReadInputTokens":N,"cacheWriteInputTokens":N}}`,
	"cohere":           `{"id":"r","message":{"role":"assistant","content":[{"type":"text","text":"Hi"}]},"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":N,"output_tokens":N},"cached_tokens":N}}`,
	"ollama":           `{"model":"m","message":{"role":"assistant","content":"Hi"},"done":true,"done_reason":"stop","total_duration":N,"prompt_eval_count":N,"eval_count":N}`,

	"google interactions": `{"id":"r","model":"m","object":"interaction","status":"completed","steps":[{"type":"model_output","content":[{"type":"text","text":"Hi"}]}],"usage":{"total_input_tokens":N,"total_output_tokens":N,"total_thought_tokens":N,"total_tool_use_tokens":N,"total_cached_tokens":N}}`,
	"anthropic invoke":    `{"id":"r","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":N,"output_tokens":N}}`,
}

// wantSound requires that the store is sound, and that all of it can be read.
func wantSound(t *testing.T, repo *tract.Repo, dir string) {
	t.Helper()
	if h := must(maintain.Fsck(t.Context(), dir, maintain.FsckOptions{}))(t); !h.OK() || len(h.Damages) > 0 {
		t.Errorf("fsck: %+v", h)
	}
	for _, list := range branches(t, repo) {
		if err := commit.LoadAll(t.Context(), repo.Store(), list...); err != nil {
			t.Error(err)
		}
	}
	total := int64(0)
	for reply, err := range inspect.Usage(t.Context(), repo, inspect.UsageOptions{}) {
		if err != nil {
			t.Error(err)
		}
		for _, n := range []int64{reply.Commit.Origin.Usage.Input, reply.Commit.Origin.Usage.Output, reply.Commit.Origin.Usage.Reasoning, reply.Commit.Origin.Usage.Cached, reply.Commit.Origin.Usage.CacheWrite} {
			if n < 0 || n > content.MaxTokens {
				t.Errorf("%d tokens of a reply", n)
			}
			total += n
		}
	}
	if total < 0 {
		t.Errorf("%d tokens in all", total)
	}
}

// TestNoResponseDamagesAStore: any usage that a provider reports, in any dialect, leaves a
// store that fsck finds sound.
func TestNoResponseDamagesAStore(t *testing.T) {
	repo, dir := onDisk(t)
	for name, response := range usageResponses {
		provider, dialect, _ := strings.Cut(name, " ")
		target := must(providers.Open(provider, providers.Config{Dialect: dialect, Model: "m", APIKey: "k"}))(t)
		main := repo.Branch(strings.ReplaceAll(name, " ", "-"))
		for _, n := range oddNumbers {
			must(main.AppendUser(t.Context(), "Hello"))(t)
			x := must(main.Prepare(t.Context(), target, tract.PrepareOptions{}))(t)
			r, err := main.Accept(t.Context(), x, strings.NewReader(strings.ReplaceAll(response, "N", n)))
			if err != nil || r.Text != "Hi" {
				t.Fatalf("%s, %s: %+v, %v", name, n, r, err)
			}
		}
	}
	wantSound(t, repo, dir)
}

// TestResponseWithLongFieldsIsCommitted commits a response whose id, model, finish reason or usage
// is longer than an object can be.
func TestResponseWithLongFieldsIsCommitted(t *testing.T) {
	repo, dir := onDisk(t)
	main := repo.Branch("main")
	target := must(providers.Open("ollama", providers.Config{Model: "m"}))(t)
	long := strings.Repeat("x", 2<<20)
	for _, at := range []string{`"model":"m"`, `"done_reason":"stop"`, `"total_duration":N`} {
		response := strings.Replace(usageResponses["ollama"], at, at[:strings.Index(at, ":")]+`:"`+long+`"`, 1)
		must(main.AppendUser(t.Context(), "Hello"))(t)
		x := must(main.Prepare(t.Context(), target, tract.PrepareOptions{}))(t)
		must(main.Accept(t.Context(), x, strings.NewReader(strings.ReplaceAll(response, "N", "7"))))(t)
	}
	wantSound(t, repo, dir)
}

// usageClient is a client whose responses cost u.
type usageClient struct{ usage content.Usage }

func (c usageClient) Generate(context.Context, *llm.Request) (*llm.Response, error) {
	return &llm.Response{Head: llm.Head{Model: "m", Usage: c.usage}, Blocks: []content.Block{content.Assistant("Hi")}}, nil
}

// TestNoClientDamagesAStore: numbers and times of a program's own client, of its clock and
// of what it imports leave a sound store, or are refused.
func TestNoClientDamagesAStore(t *testing.T) {
	now := time.Now()
	repo, dir := onDisk(t, tract.OpenOptions{Now: func() time.Time { return now }})
	main := repo.Branch("main")
	for i, n := range []int64{-1, 1 << 62, math.MaxInt64, math.MinInt64} {
		u := content.Usage{Input: n, Output: n, Reasoning: n, Cached: n, CacheWrite: n, Raw: make([]byte, 2<<20)}
		must(main.Ask(t.Context(), usageClient{u}, "Hello", tract.AskOptions{Budget: math.MaxInt}))(t)
		must(main.AppendResponse(t.Context(), &llm.Response{Head: llm.Head{Usage: u}, Blocks: []content.Block{content.Assistant("Hi")}}, tract.AppendOptions{}))(t)
		part := tract.ImportedPart{ID: string(rune('a' + i)), Block: content.Assistant("Hi")}
		must(repo.Import(t.Context(), inOrder(tract.ImportedMessage{Branch: "log-" + string(rune('a'+i)), Origin: commit.Origin{
			Usage: u, FirstToken: time.Duration(n), Duration: time.Duration(n),
		}, Parts: []tract.ImportedPart{part}}), tract.ImportOptions{}))(t)
		now = now.AddDate(-250, 0, 0)
	}
	for _, at := range []time.Time{time.Unix(1<<60, 0), time.Unix(-1<<60, 0), time.Unix(math.MaxInt64, 0), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if _, err := onlyID(main.Append(t.Context(), []content.Block{content.User("Hello")}, tract.AppendOptions{Time: at})); err == nil || !strings.Contains(err.Error(), "want a year from 0 to 9999") {
			t.Errorf("a commit of %d: %v", at.Unix(), err)
		}
		part := tract.ImportedPart{ID: "p", Time: at, Block: content.User("Hello")}
		if _, err := repo.Import(t.Context(), inOrder(tract.ImportedMessage{Branch: "late", Parts: []tract.ImportedPart{part}}), tract.ImportOptions{}); err == nil || !strings.Contains(err.Error(), `part "p"`) {
			t.Errorf("an import of %d: %v", at.Unix(), err)
		}
	}
	wantSound(t, repo, dir)
}

// TestNoLogDamagesAStore imports a session log with odd numbers, times and lengths.
func TestNoLogDamagesAStore(t *testing.T) {
	line := `{"type":"assistant","uuid":"U","sessionId":"s","timestamp":"T","cwd":"D","message":{"id":"r-U","role":"assistant","model":"m","stop_reason":"end_turn","content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":N,"output_tokens":N,"cache_read_input_tokens":N,"cache_creation_input_tokens":N}}}` + "\n"
	log := ""
	add := func(number, at, cwd string) {
		id := string(rune('a'+strings.Count(log, "\n")/26)) + string(rune('a'+strings.Count(log, "\n")%26))
		log += strings.NewReplacer("U", id, "N", number, "T", at, "D", cwd).Replace(line)
	}
	for _, n := range oddNumbers {
		add(n, "2025-01-01T00:00:00Z", "/")
	}
	for _, at := range []string{"9999-12-31T23:59:59-12:00", "0000-01-01T00:00:00+12:00", "99999-01-01T00:00:00Z", "", "soon"} {
		add("1", at, "/")
	}
	add("1", "2025-01-01T00:00:00Z", strings.Repeat("/x", 1<<20))
	repo, dir := onDisk(t)
	var list []tract.ImportedMessage
	for e, err := range importers.Read("log", strings.NewReader(log), importers.ClaudeCode) {
		if err != nil {
			t.Fatal(err)
		}
		f := tract.ImportedMessage{Branch: "log", Origin: commit.Origin{Model: e.Model, ResponseID: e.ResponseID, Finish: e.Finish, Usage: e.Usage, Importer: e.Importer, Original: e.Original}}
		for _, p := range e.Parts {
			f.Parts = append(f.Parts, tract.ImportedPart{ID: p.ID, Time: p.Time, Block: p.Block})
		}
		list = append(list, f)
	}
	done := must(repo.Import(t.Context(), inOrder(list...), tract.ImportOptions{}))(t)
	if len(done) != 1 || done[0].Added != strings.Count(log, "\n") {
		t.Errorf("%+v of %d lines", done, strings.Count(log, "\n"))
	}
	wantSound(t, repo, dir)
}

// answering is a transport that answers every request with a body.
type answering string

func (a answering) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req, Body: io.NopCloser(strings.NewReader(string(a))),
	}, nil
}

// TestNoRecordedCallDamagesAStore records calls whose usage is odd.
func TestNoRecordedCallDamagesAStore(t *testing.T) {
	repo, dir := onDisk(t)
	for _, n := range oddNumbers {
		wire := recorder.New(repo, recorder.Options{
			Next: answering(strings.ReplaceAll(usageResponses["deepseek"], "N", n)), OnError: func(err *recorder.Error) { t.Error(n, err) },
		})
		req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.deepseek.com/v1/chat/completions",
			strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"Hello `+strings.Trim(n, `"`)+`"}]}`)))(t)
		res := must((&http.Client{Transport: wire}).Do(req))(t)
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if err := wire.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(branches(t, repo)); got != len(oddNumbers) {
		t.Errorf("%d branches", got)
	}
	wantSound(t, repo, dir)
}
