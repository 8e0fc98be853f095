package recorder_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/recorder"
)

func TestRequestWithoutAResponseGetsANote(t *testing.T) {
	w := newWire(t, "mem:", says("A1"))
	main := recorder.On(t.Context(), "main")
	url := w.url
	w.url = "http://127.0.0.1:1" // nobody listens
	if _, err := w.client.Do(w.request(main, chatBody("Q1"))); err == nil {
		t.Fatal("it was answered")
	}
	if err := w.transport.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.url = url
	w.ask(main, "Q1")
	have := w.branches()["main"]
	if !strings.HasPrefix(have, "Q1 | the request was not answered: dial tcp") || !strings.HasSuffix(have, " | A1") {
		t.Errorf("have %q", have)
	}
}

// TestUnreadableExchangesAreReportedOrNoted records a request and a response in an unknown format,
// and a server that repeats the key.
func TestUnreadableExchangesAreReportedOrNoted(t *testing.T) {
	w := newWire(t, "mem:", func(out http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		out.Header().Set("Content-Encoding", "lzma")
		io.WriteString(out, "packed for "+r.URL.Query().Get("key")+r.Header.Get("Api-Key"))
	})
	main := recorder.On(t.Context(), "main")
	res, err := w.client.Do(w.request(main, `{"messages":[{"role":"ghost"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if err := <-w.errs; !strings.Contains(err.Error(), "ghost") || !strings.HasPrefix(err.Error(), "record /v1/chat/completions: decode request") {
		t.Errorf("the hook was told %v", err)
	}
	req := w.request(main, chatBody("Q"))
	req.Header.Set("Api-Key", "secret-in-a-header")
	req.URL.RawQuery = "key=secret-in-the-address"
	if res, err = w.client.Do(req); err != nil {
		t.Fatal(err)
	}
	came, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || string(came) != "packed for secret-in-the-addresssecret-in-a-header" {
		t.Errorf("the client saw %q, %v", came, err)
	}
	w.settle()
	c, err := w.repo.Show(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	if have := c.Block.String(); have != "the response could not be read: content encoding \"lzma\" cannot be read\npacked for [secret][secret]" {
		t.Errorf("the note is %q", have)
	}
}
