package providers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/llmtest"
)

// TestErrorsMaskKeysInAnySpelling: a provider may quote the key with the escapes of a URL, of JSON, of
// HTML or of a program, in part or twice over. No error has it.
func TestErrorsMaskKeysInAnySpelling(t *testing.T) {
	each := func(format string) string {
		var b strings.Builder
		for _, c := range []byte(aKey) {
			fmt.Fprintf(&b, format, c)
		}
		return b.String()
	}
	quoted, err := json.Marshal(each(`\u%04x`))
	if err != nil {
		t.Fatal(err)
	}
	for name, spelling := range map[string]string{
		"a URL": url.QueryEscape(aKey), "a URL, small": "sk-ant-test-0123456789%2f%2babc", "a URL in part": "sk-ant-test-%30123456789/%2Babc", "all of it": each("%%%02X"),
		"twice over": url.QueryEscape(each("%%%02x")), "JSON": each(`\u%04x`), "JSON in part": `\u0073k-ant-test-0123456789\/\u002Babc`, "JSON in JSON": string(quoted[1 : len(quoted)-1]),
		"HTML": each("&#%d;"), "HTML in hex": each("&#x%X;"), "HTML in part": "sk-ant-test-0123456789&sol;&plus;abc", "a program": each(`\x%02x`),
	} {
		for _, body := range []string{`{"error":{"message":"no ` + spelling + ` here"}}`, "no " + spelling + " here", `{"no ` + spelling + ` here":1}`} {
			body := strings.ReplaceAll(body, `\x`, `\\x`) // JSON has no such escape
			_, err := ask(t, llmtest.Start(t, llmtest.Exchange{Status: 401, Body: body}).URL(), Config{APIKey: aKey})
			e := wantAPIError(t, err)
			if json.Valid([]byte(body)) && len(e.Raw) > 0 && !json.Valid(e.Raw) {
				t.Errorf("%s in %s: %s is no JSON any more", name, body, e.Raw)
			}
			for _, text := range []string{err.Error(), e.Message, string(e.Raw)} {
				if text != "" && !strings.Contains(text, "no [key] here") {
					t.Errorf("%s in %s: %s", name, body, text)
				}
			}
		}
	}
}

// TestErrorsMaskEveryHeaderWithAKey: what a header or a value of the address carries under the
// name of a key is in no error.
func TestErrorsMaskEveryHeaderWithAKey(t *testing.T) {
	const word = "plainword"
	for _, name := range []string{"X-Key", "X-Token", "X-Secret", "X-Auth", "Cookie", "X-Password", "X-Sig"} {
		for in, config := range map[string]Config{"": {Headers: map[string]string{name: word}}, "?" + name + "=" + word: {APIKey: aKey}} {
			s := llmtest.Start(t, llmtest.Exchange{Status: 401, Body: "no " + word})
			if _, err := ask(t, s.URL()+in, config); wantAPIError(t, err).Message != "no [key]" {
				t.Errorf("%s %s: %v", name, in, err)
			}
		}
	}
}

// TestRefusals reads what providers say when they say no.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		body, kind, message string
	}{
		"anthropic":        {`{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: too high"},"request_id":"req_b"}`, "invalid_request_error", "max_tokens: too high"},
		"openai":           {`{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found","param":"model"}}`, "invalid_request_error", "no such model"},
		"only a code":      {`{"error":{"message":"no","code":404}}`, "404", "no"},
		"a text":           {`{"error":"model is loading"}`, "", "model is loading"},
		"a message":        {`{"message":"unauthorised"}`, "", "unauthorised"},
		"a list":           {`[{"error":{"message":"quota","status":"RESOURCE_EXHAUSTED"}}]`, "RESOURCE_EXHAUSTED", "quota"},
		"plain text":       {"upstream is\nnot there", "", "upstream is\nnot there"},
		"HTML":             {"<!DOCTYPE html>\n<html><head><TITLE>502 Bad &amp; Gateway</TITLE></head></html>", "", "502 Bad & Gateway"},
		"nothing":          {"", "", "I'm a teapot"},
		"another JSON":     {`{"ok":false}`, "", `{"ok":false}`},
		"echoes a key":     {`{"error":{"message":"Incorrect API key provided: ` + aKey + `"}}`, "", "Incorrect API key provided: [key]"},
		"quotes another's": {`{"error":{"message":"no access for AKIAZQ3DR7YPLK2MNB5X"}}`, "", "no access for [masked:aws-id:7097]"},
		"and quotes it":    {`{"error":{"message":"key sk-ant-test-0123456789%2F%2Babc"}}`, "", "key [key]"},
	} {
		s := llmtest.Start(t, llmtest.Exchange{Status: 418, Header: map[string]string{"Request-Id": "req_h"}, Body: c.body})
		_, err := ask(t, s.URL(), Config{APIKey: aKey})
		e := wantAPIError(t, err)
		if e.Status != 418 || e.Provider != "anthropic" || e.Type != c.kind || e.Message != c.message || !strings.HasPrefix(e.RequestID, "req_") {
			t.Errorf("%s: %+v", name, e)
		}
		if strings.Contains(string(e.Raw)+err.Error(), aKey) {
			t.Errorf("%s: the key is in %v, %s", name, err, e.Raw)
		}
	}
}

func TestRetryWaitsAsAsked(t *testing.T) {
	limit := llmtest.Exchange{Status: 429, Header: map[string]string{"Retry-After": "1"}, Body: `{"error":{"message":"slow down"}}`}
	s := llmtest.Start(t, limit, llmtest.Exchange{Body: anAnswer})
	var told []string
	began := time.Now()
	reply, err := ask(t, s.URL(), Config{APIKey: aKey, Log: func(line string) { told = append(told, line) }})
	if err != nil || reply.Text() != "Blue." {
		t.Fatal(reply, err)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("asked again after %s", took)
	}
	if len(told) != 1 || !strings.Contains(told[0], "slow down: retrying in 1s (1 of 2)") {
		t.Errorf("%q", told)
	}

	for name, x := range map[string]llmtest.Exchange{
		"too long":   {Status: 429, Header: map[string]string{"Retry-After": "3600"}},
		"not wanted": {Status: 500, Header: map[string]string{"X-Should-Retry": "false"}},
		"no use":     {Status: 404},
	} {
		s := llmtest.Start(t, x)
		if _, err := ask(t, s.URL(), Config{}); wantAPIError(t, err).Status != x.Status {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMalformedResponses(t *testing.T) {
	down := llmtest.Exchange{Status: 503, Header: map[string]string{"Retry-After-Ms": "1"}, Body: "down"}
	s := llmtest.Start(t, down, down, down)
	if _, err := ask(t, s.URL(), Config{}); wantAPIError(t, err).Status != 503 {
		t.Error(err)
	}
	s = llmtest.Start(t, down)
	if _, err := ask(t, s.URL(), Config{Retries: -1}); wantAPIError(t, err).Status != 503 {
		t.Error(err)
	}
	s = llmtest.Start(t, llmtest.Exchange{Cut: true}, llmtest.Exchange{Header: map[string]string{"Content-Length": "9"}, Body: "", Cut: true}, llmtest.Exchange{Body: anAnswer})
	if reply, err := ask(t, s.URL(), Config{}); err != nil || reply.Text() != "Blue." {
		t.Errorf("connections that broke before an answer were not tried again: %v", err)
	}
}

func TestResponsesThatAreNotAnAnswer(t *testing.T) {
	for name, body := range map[string]string{
		"HTML": "<html><body>Sign in</body></html>", "garbage": "\x00\x01\x02", "other JSON": `{"ok":true}`, "a list": `[1,2]`,
		"events of garbage": "data: {]\n\ndata: x\n\n",
	} {
		s := llmtest.Start(t, llmtest.Exchange{Body: body})
		if _, err := ask(t, s.URL(), Config{}); !errors.Is(err, llm.ErrProtocol) {
			t.Errorf("%s: %v, want %v", name, err, llm.ErrProtocol)
		}
	}
	s := llmtest.Start(t, llmtest.Exchange{}, llmtest.Exchange{Body: anAnswer[:90]})
	for range 2 {
		if _, err := ask(t, s.URL(), Config{}); !errors.Is(err, llm.ErrTruncated) && !errors.Is(err, llm.ErrProtocol) {
			t.Error(err)
		}
	}
}

func TestSilentServerTimesOut(t *testing.T) {
	s := llmtest.Start(t, llmtest.Exchange{Delay: time.Minute}, llmtest.Exchange{Chunks: messagesEvents, Pace: time.Minute})
	if _, err := ask(t, s.URL(), Config{HeaderTimeout: 30 * time.Millisecond}); !errors.Is(err, llm.ErrTimeout) || !strings.Contains(err.Error(), "for 30ms") {
		t.Errorf("silent before the answer: %v", err)
	}
	reply, err := ask(t, s.URL(), Config{IdleTimeout: 30 * time.Millisecond})
	if !errors.Is(err, llm.ErrTimeout) || reply == nil || !reply.Incomplete {
		t.Errorf("silent in the answer: %+v, %v", reply, err)
	}
}

// TestRedirectToAnotherHostGetsNoKey: another host gets nothing; the same one may
// have moved the path.
func TestRedirectToAnotherHostGetsNoKey(t *testing.T) {
	thief := llmtest.Start(t)
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := llmtest.Start(t, llmtest.Exchange{Status: status, Header: map[string]string{"Location": thief.URL() + "/v1/messages?key=stolen"}})
		_, err := ask(t, s.URL(), Config{APIKey: aKey})
		if e := wantAPIError(t, err); e.Type != "redirect" || !strings.Contains(e.Message, thief.URL()) || strings.Contains(e.Message, "stolen") {
			t.Errorf("%d: %v", status, err)
		}
	}
	s := llmtest.Start(t, llmtest.Exchange{Status: 308, Header: map[string]string{"Location": "/v2/messages"}}, llmtest.Exchange{Path: "/v2/messages", Body: anAnswer})
	if _, err := ask(t, s.URL(), Config{APIKey: aKey}); err != nil {
		t.Error(err)
	}
	if len(thief.Requests()) != 0 {
		t.Error("the other host was asked")
	}
}

// TestRedirectToPlainHTTPGetsNoKey: the same host without TLS gets nothing. The
// dialer stands for the network: both schemes of the host lead to one plain server.
func TestRedirectToPlainHTTPGetsNoKey(t *testing.T) {
	s := llmtest.Start(t, llmtest.Exchange{Status: 308, Header: map[string]string{"Location": "http://provider.test/v2/messages"}})
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(s.URL(), "http://"))
	}
	c := Config{APIKey: aKey, HTTP: &http.Client{Transport: &http.Transport{DialContext: dial, DialTLSContext: dial}}}
	_, err := ask(t, "https://provider.test", c)
	if e := wantAPIError(t, err); e.Type != "redirect" || len(s.Requests()) != 1 {
		t.Errorf("%d requests, %v; want one, and the redirect in the error", len(s.Requests()), err)
	}
}

func TestRetriesWhenAProviderIsDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = ask(t, "http://user:passw0rd@"+l.Addr().String()+"/?key=in-the-query", Config{APIKey: aKey, Retries: -1})
	var e *llm.NetworkError
	if !errors.As(err, &e) || e.Host != l.Addr().String() || e.Provider != "anthropic" {
		t.Fatal(err)
	}
	if !errors.As(err, new(*net.OpError)) {
		t.Errorf("the cause is gone: %v", err)
	}
	for _, secret := range []string{aKey, "passw0rd", "in-the-query"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q is in %v", secret, err)
		}
	}
}

// TestCancelledRequest cancels with a cause of its own, as a signal does: it counts as
// cancelled while waiting to ask again, for the answer, and in it.
func TestCancelledRequest(t *testing.T) {
	for name, x := range map[string]llmtest.Exchange{
		"between": {Status: 429, Header: map[string]string{"Retry-After": "30"}},
		"before":  {Delay: time.Minute},
		"within":  {Chunks: messagesEvents, Pace: time.Minute},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		give := func() { cancel(errors.New("ctrl-c")) }
		x.Check = func(*llmtest.Request) error {
			if name == "before" {
				time.AfterFunc(20*time.Millisecond, give)
			}
			return nil
		}
		s := llmtest.Start(t, x)
		c, err := Open("anthropic", Config{BaseURL: s.URL(), Model: "m", Log: func(string) { give() }})
		if err != nil {
			t.Fatal(err)
		}
		for _, err = range c.Stream(ctx, &llm.Request{}) {
			if name == "within" {
				give()
			}
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestErrorInsideAStream comes with status 200, and after words.
func TestErrorInsideAStream(t *testing.T) {
	overloaded := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded, ` + aKey + `"},"request_id":"req_7"}`
	s := llmtest.Start(t, llmtest.Exchange{Chunks: append(messagesEvents[:9:9], sseEvent(overloaded))}, llmtest.Exchange{Body: overloaded})
	reply, err := ask(t, s.URL(), Config{APIKey: aKey})
	if e := wantAPIError(t, err); e.Status != 0 || e.Type != "overloaded_error" || e.Message != "Overloaded, [key]" || e.RequestID != "req_7" {
		t.Errorf("%+v", e)
	}
	if reply == nil || len(reply.Blocks) != 2 || !reply.Incomplete || reply.Text() != "The blue " || reply.Blocks[0].Form().Seal.Data != "U0VBTA==" {
		t.Errorf("what came before it: %+v", reply)
	}
	if reply, err := ask(t, s.URL(), Config{APIKey: aKey}); reply != nil || wantAPIError(t, err).RequestID != "req_7" {
		t.Errorf("%+v, %v", reply, err)
	}
}

// TestStreamWithAVeryLongLine comes whole, and one that never ends does not.
func TestStreamWithAVeryLongLine(t *testing.T) {
	long := strings.Repeat("abcdefgh", 34<<17)
	events := append([]string{}, messagesEvents[:8]...)
	events = append(events, sseEvent(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"`+long+`"}}`))
	events = append(events, messagesEvents[10:]...)
	s := llmtest.Start(t, llmtest.Exchange{Chunks: events})
	reply, err := ask(t, s.URL(), Config{})
	if err != nil || reply.Text() != long {
		t.Fatalf("%d of %d bytes came: %v", len(reply.Text()), len(long), err)
	}
	endless := io.MultiReader(strings.NewReader("data: "), &repeated{})
	if _, err := llm.Collect(Decode("messages", "", "", endless, llm.FramingAuto), nil); !errors.Is(err, llm.ErrTooLong) {
		t.Error(err)
	}
}

type repeated struct{}

func (*repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestOptionalFieldIsRemovedAfterARefusal: what nobody asked for is no reason to fail.
func TestOptionalFieldIsRemovedAfterARefusal(t *testing.T) {
	refusal := llmtest.Exchange{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"thinking.adaptive.display: Extra inputs are not permitted"}}`}
	s := llmtest.Start(t, refusal, llmtest.Exchange{Body: anAnswer}, refusal)
	c, err := Open("anthropic", Config{BaseURL: s.URL(), Model: "claude-opus-5"})
	if err != nil {
		t.Fatal(err)
	}
	req := &llm.Request{Settings: llm.Settings{Reasoning: llm.Reasoning{Effort: "high"}}}
	reply, err := c.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	first, second := s.Requests()[0].Body, s.Requests()[1].Body
	if !strings.Contains(string(first), `"display"`) || strings.Contains(string(second), "display") || !strings.Contains(string(second), `"adaptive"`) || string(reply.Sent) != string(second) {
		t.Errorf("asked %s, then %s", first, second)
	}
	req.Settings.Extra = []byte(`{"thinking":{"type":"adaptive","display":"summarized"}}`)
	if _, err := c.Generate(t.Context(), req); wantAPIError(t, err).Status != 400 {
		t.Error("a field that somebody asked for was taken back")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		header, value string
		want          time.Duration
	}{
		"seconds": {"Retry-After", "2", 2 * time.Second}, "parts": {"Retry-After", "0.5", 500 * time.Millisecond},
		"date": {"Retry-After", "Sat, 21 Nov 2026 10:00:07 GMT", 7 * time.Second}, "past": {"Retry-After", "Sat, 21 Nov 2026 09:00:00 GMT", 0},
		"milliseconds": {"Retry-After-Ms", "30", 30 * time.Millisecond}, "nonsense": {"Retry-After", "soon", 0},
		"negative": {"Retry-After", "-5", 0}, "not a number": {"Retry-After", "NaN", 0}, "for ever": {"Retry-After", "1e300", 0},
	} {
		if got := retryAfter(http.Header{c.header: {c.value}}, now); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
