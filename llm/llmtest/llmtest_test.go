package llmtest_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/llm/llmtest"
)

func post(t *testing.T, client *http.Client, url, body string, header ...string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

func TestServerPlaysItsScript(t *testing.T) {
	s := llmtest.Start(t,
		llmtest.Exchange{Path: "/v1/x", WantJSON: `{"a": 1, "b": [true]}`, Body: `{"n":1}`},
		llmtest.Exchange{Status: 500, Header: map[string]string{"Request-Id": "r1"}, Body: "down"},
		llmtest.Exchange{Chunks: []string{"data: a\n\n", "data: b"}, Cut: true},
		llmtest.Exchange{Cut: true},
	)
	if status, body, err := post(t, http.DefaultClient, s.URL()+"/v1/x", `{"b":[true],"a":1.0}`); status != 200 || body != `{"n":1}` || err != nil {
		t.Error(status, body, err)
	}
	if status, body, err := post(t, http.DefaultClient, s.URL()+"/v1/y", "anything"); status != 500 || body != "down" || err != nil {
		t.Error(status, body, err)
	}
	if _, body, err := post(t, http.DefaultClient, s.URL(), ""); body != "data: a\n\ndata: b" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut stream gave %q, %v", body, err)
	}
	if _, _, err := post(t, http.DefaultClient, s.URL(), ""); err == nil {
		t.Error("a cut before the answer was no error")
	}
	if asked := s.Requests(); len(asked) != 4 || asked[1].Path != "/v1/y" || string(asked[1].Body) != "anything" {
		t.Errorf("%+v", asked)
	}
}

func TestServerReportsAMismatch(t *testing.T) {
	s, err := llmtest.Serve(
		llmtest.Exchange{Path: "/a"},
		llmtest.Exchange{WantJSON: `{"messages":[{"role":"user"}]}`},
		llmtest.Exchange{Check: func(r *llmtest.Request) error { return errors.New("no " + r.Method) }},
		llmtest.Exchange{}, llmtest.Exchange{},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, body := range []string{`{}`, `{"messages":[{"role":"tool"}]}`, `{}`} {
		if status, _, err := post(t, http.DefaultClient, s.URL()+"/b", body); status != 422 || err != nil {
			t.Error(status, err)
		}
	}
	fault := s.Err().Error()
	for _, want := range []string{`request 1: path "/b", want "/a"`, `body.messages[0].role is "tool", want "user"`, "request 3: no POST", "3 of 5"} {
		if !strings.Contains(fault, want) {
			t.Errorf("%q is not in %q", want, fault)
		}
	}
}

// TestRecordingMasksSecrets sends secrets in every place that is known for it.
func TestRecordingMasksSecrets(t *testing.T) {
	const key, cookie, other = "sk-secret-0123456789abcdefgh", "session-value-77", "gsk_abcdefghijklmnopqrst"
	s := llmtest.Start(t,
		llmtest.Exchange{Header: map[string]string{"Set-Cookie": "id=" + cookie, "Request-Id": "req_1"}, Body: `{"echo":"` + key + `","ok":true}`},
		llmtest.Exchange{Status: 401, Body: "your key " + other + " and \xff", Cut: false},
	)
	dir := t.TempDir()
	client := &http.Client{Transport: &llmtest.Recorder{Dir: dir, Next: http.DefaultTransport, Secrets: []string{"my project"}}}
	_, body, err := post(t, client, s.URL()+"/v1?key=querysecret&alt=sse", `{"api_key":"in-body-1","q":"about my project"}`,
		"Authorization", "Bearer "+key, "X-Api-Key", "x-"+key, "Cookie", "id="+cookie)
	if err != nil || !strings.Contains(body, key) {
		t.Error("the recorder changed the answer:", body, err)
	}
	if status, _, err := post(t, client, s.URL()+"/v1", `{"q":2}`); status != 401 || err != nil {
		t.Error(status, err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{key, cookie, other, "querysecret", "in-body-1", "my project"} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%q is in %s", secret, text)
			}
		}
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Error(info.Mode(), err)
		}
	}

	script, err := llmtest.Load(dir)
	if err != nil || len(script) != 2 {
		t.Fatal(script, err)
	}
	if script[0].Path != "/v1" || script[0].Header["Request-Id"] != "req_1" || script[0].Body != `{"echo":"[secret]","ok":true}` {
		t.Errorf("%+v", script[0])
	}
	if script[1].Status != 401 || script[1].WantJSON != `{"q":2}` || !strings.HasSuffix(script[1].Body, "\xff") {
		t.Errorf("%+v", script[1])
	}
}

func TestRecordingIsReplayed(t *testing.T) {
	dir := t.TempDir()
	live := llmtest.Start(t, llmtest.Exchange{Chunks: []string{"data: 1\n\n", "data: 2\n\n"}}, llmtest.Exchange{Chunks: []string{"data: 3\n\n"}, Cut: true})
	recorder := &http.Client{Transport: &llmtest.Recorder{Dir: dir, Next: http.DefaultTransport}}
	var said []string
	var broken []bool
	for _, q := range []string{`{"q":1}`, `{"q":2}`} {
		_, body, err := post(t, recorder, live.URL()+"/v1", q)
		said, broken = append(said, body), append(broken, err != nil)
	}
	script, err := llmtest.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	again := llmtest.Start(t, script...)
	for i, q := range []string{`{ "q": 1 }`, `{"q":2}`} {
		if _, body, err := post(t, http.DefaultClient, again.URL()+"/v1", q); body != said[i] || (err != nil) != broken[i] {
			t.Errorf("%s: %q %v, want %q broken %t", q, body, err, said[i], broken[i])
		}
	}
}

func TestRecorderRefusesCompressedBodies(t *testing.T) {
	dir := t.TempDir()
	s := llmtest.Start(t,
		llmtest.Exchange{Header: map[string]string{"Content-Encoding": "br"}, Body: "\x01\x02"},
		llmtest.Exchange{Body: "plain", Check: func(r *llmtest.Request) error {
			if got := r.Header.Get("Accept-Encoding"); got != "gzip" {
				return errors.New("asked for " + got)
			}
			return nil
		}})
	client := &http.Client{Transport: &llmtest.Recorder{Dir: dir, Next: http.DefaultTransport}}
	if _, _, err := post(t, client, s.URL(), "", "Accept-Encoding", "br"); err == nil {
		t.Error("an answer that nobody can look into was recorded")
	}
	if _, body, err := post(t, client, s.URL(), "", "Accept-Encoding", "br"); body != "plain" || err != nil {
		t.Error(body, err)
	}
	if script, err := llmtest.Load(dir); len(script) != 1 || err != nil {
		t.Error(script, err)
	}
}

// TestServerOutsideOfTests: what tests import has no place in a program.
func TestServerOutsideOfTests(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if p := strings.TrimSpace(line); p == "testing" || p == "net/http/httptest" {
			t.Errorf("llmtest imports %s", p)
		}
	}
}
