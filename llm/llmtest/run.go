package llmtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
)

// Dialect is what [Run] has to know of a wire format: what a server says in it.
type Dialect struct {
	Path   string   // where requests go, below the URL of the server
	JSON   string   // an answer with a reasoning block, a text and a call, in one piece
	Stream []string // the same answer as events, each with the blank line after it
	Broken string   // an event that says, in the middle of a stream, that it went wrong
	Refuse string   // the body of a refusal; KEY in it stands for the key
}

// waitLimit is how long a test waits for what should come at once.
const waitLimit = 10 * time.Second

// T is what is used of a *testing.T. The package does not import testing, so
// that programs may use its server.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
	Context() context.Context
}

// Start serves a script until the test ends, and fails the test when something
// else was asked.
func Start(t T, script ...Exchange) *Server {
	t.Helper()
	s, err := Serve(script...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), s.Err()); err != nil {
			t.Errorf("%v", err)
		}
	})
	return s
}

// Run holds a client to the promises of package llm: the same answer however it
// comes, nothing lost when it breaks off, no key in any error. open makes a client
// that asks the server at base, with a key, and asks again when it is refused.
func Run(t T, d Dialect, open func(base, key string) llm.Client) {
	t.Helper()
	s := &suite{Dialect: d, open: open}
	for name, promise := range map[string]func(T){
		"whole": s.testBody, "stream": s.testStream, "every cut": s.testCuts, "error in a stream": s.testBroken,
		"asks again": s.testRetry, "no key in errors": s.key, "leaving": s.testEarlyBreak, "cancelled": s.testCancel,
	} {
		promise(named{t, name})
	}
}

// named is a T whose messages begin with a name.
type named struct {
	T
	name string
}

func (n named) Errorf(format string, args ...any) {
	n.Helper()
	n.T.Errorf("%s: %s", n.name, fmt.Sprintf(format, args...))
}

func (n named) Fatalf(format string, args ...any) {
	n.Helper()
	n.T.Fatalf("%s: %s", n.name, fmt.Sprintf(format, args...))
}

type suite struct {
	Dialect
	open func(base, key string) llm.Client
}

const testKey = "sk-llmtest-0123456789abcdef"

func (s *suite) start(t T, script ...Exchange) (llm.Client, *Server) {
	t.Helper()
	for i := range script {
		script[i].Path = s.Path
	}
	server := Start(t, script...)
	return s.open(server.URL(), testKey), server
}

func newRequest(stream bool) *llm.Request {
	return &llm.Request{
		Messages: []content.Message{{Role: content.RoleUser, Blocks: []content.Block{content.User("Which?")}}},
		Settings: llm.Settings{Model: "test-model"}, Stream: stream,
	}
}

// summarize returns the blocks in words.
func summarize(blocks []content.Block) string {
	var b strings.Builder
	for _, block := range blocks {
		b.WriteString(block.Kind().String() + ":" + block.String() + ":" + block.Form().Seal.Data + "\n")
	}
	return b.String()
}

// collectStream asks in the way that the client can.
func collectStream(ctx context.Context, c llm.Client, stream bool) (*llm.Response, error) {
	if s, ok := c.(llm.Streamer); ok && stream {
		return llm.Collect(s.Stream(ctx, newRequest(true)), nil)
	}
	return c.Generate(ctx, newRequest(stream))
}

func (s *suite) testBody(t T) {
	c, server := s.start(t, Exchange{Body: s.JSON}, Exchange{Chunks: s.Stream})
	first, err := c.Generate(t.Context(), newRequest(false))
	if err != nil {
		t.Fatalf("%v", err)
	}
	kinds := map[content.Kind]bool{}
	for _, b := range first.Blocks {
		kinds[b.Kind()] = true
	}
	if first.Incomplete || !kinds[content.KindReasoning] || !kinds[content.KindAssistant] || len(first.ToolCalls()) == 0 || first.Usage.IsZero() || first.Finish == "" {
		t.Errorf("want reasoning, text, a tool call, usage and a finish reason: %+v", first)
	}
	if first.Raw != nil && string(first.Raw) != s.JSON {
		t.Errorf("raw is %q", first.Raw)
	}
	if sent := server.Requests()[0].Body; first.Sent != nil && string(first.Sent) != string(sent) {
		t.Errorf("sent is %q, came %q", first.Sent, sent)
	}
	second, err := c.Generate(t.Context(), newRequest(true))
	if err != nil {
		t.Fatalf("%v", err)
	}
	if summarize(first.Blocks) != summarize(second.Blocks) {
		t.Errorf("in one piece\n%sas a stream\n%s", summarize(first.Blocks), summarize(second.Blocks))
	}
}

func (s *suite) testStream(t T) {
	c, _ := s.start(t, Exchange{Chunks: s.Stream}, Exchange{Body: s.JSON})
	streamer, ok := c.(llm.Streamer)
	if !ok {
		return // it need not
	}
	var text, thought string
	first, err := llm.Collect(streamer.Stream(t.Context(), newRequest(true)), func(e llm.Event) {
		switch e.Type {
		case llm.TextDelta:
			text += e.Text
		case llm.ReasoningDelta:
			thought += e.Text
		}
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	if text != first.Text() || thought != first.Reasoning() {
		t.Errorf("the deltas have %q and %q, the blocks %q and %q", text, thought, first.Text(), first.Reasoning())
	}
	second, err := llm.Collect(streamer.Stream(t.Context(), newRequest(false)), nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if summarize(first.Blocks) != summarize(second.Blocks) {
		t.Errorf("as a stream\n%sin one piece\n%s", summarize(first.Blocks), summarize(second.Blocks))
	}
}

// testCuts breaks the connection after each event: what was whole stays.
func (s *suite) testCuts(t T) {
	c, _ := s.start(t, Exchange{Chunks: s.Stream})
	full, err := collectStream(t.Context(), c, true)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for n := 1; n < len(s.Stream)-1; n++ {
		c, _ := s.start(t, Exchange{Chunks: s.Stream[:n], Cut: true})
		reply, err := collectStream(t.Context(), c, true)
		if err == nil {
			if summarize(reply.Blocks) != summarize(full.Blocks) {
				t.Errorf("cut after event %d: no error, and only\n%s", n, summarize(reply.Blocks))
			}
			continue
		}
		if !errors.Is(err, llm.ErrTruncated) {
			t.Errorf("cut after event %d: %v, want %v", n, err, llm.ErrTruncated)
		}
		if reply == nil {
			continue
		}
		if !reply.Incomplete {
			t.Errorf("cut after event %d: not marked incomplete", n)
		}
		for i, b := range reply.Blocks {
			if !b.Form().Incomplete && b.String() != full.Blocks[i].String() {
				t.Errorf("cut after event %d: block %d is %q and not marked", n, i, b)
			}
		}
	}
}

func (s *suite) testBroken(t T) {
	half := len(s.Stream) / 2
	c, _ := s.start(t, Exchange{Chunks: append(s.Stream[:half:half], s.Broken)})
	reply, err := collectStream(t.Context(), c, true)
	var api *llm.APIError
	if !errors.As(err, &api) || api.Message == "" {
		t.Fatalf("error %v, want what the provider said", err)
	}
	if reply == nil || !reply.Incomplete || len(reply.Blocks) == 0 {
		t.Errorf("what came before is lost: %+v", reply)
	}
}

func (s *suite) testRetry(t T) {
	c, server := s.start(t,
		Exchange{Status: 429, Header: map[string]string{"Retry-After-Ms": "1"}, Body: s.Refuse},
		Exchange{Status: 503, Header: map[string]string{"Retry-After-Ms": "1"}, Body: "<html><title>down</title></html>"},
		Exchange{Body: s.JSON})
	if _, err := c.Generate(t.Context(), newRequest(false)); err != nil {
		t.Fatalf("%v", err)
	}
	asked := server.Requests()
	for _, r := range asked[1:] {
		if string(r.Body) != string(asked[0].Body) {
			t.Errorf("asked again with %s, first with %s", r.Body, asked[0].Body)
		}
	}
}

func (s *suite) key(t T) {
	refuse := strings.ReplaceAll(s.Refuse, "KEY", testKey)
	for name, x := range map[string]Exchange{
		"refused": {Status: 401, Body: refuse}, "plain text": {Status: 403, Body: "key " + testKey + " is not known"},
		"not JSON": {Body: "key " + testKey}, "in an answer": {Body: refuse},
	} {
		c, server := s.start(t, x)
		_, err := c.Generate(t.Context(), newRequest(false))
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for ; err != nil; err = errors.Unwrap(err) {
			if strings.Contains(err.Error(), testKey) {
				t.Errorf("%s: the key is in %q", name, err)
			}
			if api, ok := err.(*llm.APIError); ok && strings.Contains(string(api.Raw), testKey) {
				t.Errorf("%s: the key is in %q", name, api.Raw)
			}
		}
		for _, r := range server.Requests() {
			if strings.Contains(r.Path+r.Query+string(r.Body), testKey) {
				t.Errorf("%s: the key was sent where logs see it: %s?%s", name, r.Path, r.Query)
			}
		}
	}
}

// testEarlyBreak stops listening in the middle: the request ends.
func (s *suite) testEarlyBreak(t T) {
	c, server := s.start(t, Exchange{Chunks: s.Stream, Pace: time.Millisecond})
	streamer, ok := c.(llm.Streamer)
	if !ok {
		return // it need not
	}
	for range streamer.Stream(t.Context(), newRequest(true)) {
		break
	}
	if n := len(server.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func (s *suite) testCancel(t T) {
	c, _ := s.start(t, Exchange{Chunks: s.Stream, Delay: waitLimit})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := collectStream(ctx, c, true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
	if took := time.Since(began); took > waitLimit/2 {
		t.Errorf("it took %s to stop", took)
	}
}
