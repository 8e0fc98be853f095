package recorder_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/internal/secrets/secretstest"
	"github.com/tract-vcs/tract/recorder"
)

// TestSecretsOnTheWireAreNotRecorded has a secret of every form in the headers, the
// address, the settings, the tools and the messages of a request, in the words of a
// refusal, in an answer that cannot be read and in one that can. The client sees all
// bytes as they come; nothing of them is stored.
func TestSecretsOnTheWireAreNotRecorded(t *testing.T) {
	var body string
	status := http.StatusOK
	w := newWire(t, "mem:", func(out http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		out.Header().Set("X-Request-Id", strings.ReplaceAll(r.Header.Get("Api-Key"), "\n", ""))
		out.WriteHeader(status)
		io.WriteString(out, body)
	})
	ask := func(p secretstest.Planted, branch, came string, code int) {
		t.Helper()
		body, status = came, code
		said := text(p.Text())
		req := w.request(recorder.On(t.Context(), branch), fmt.Sprintf(`{"model":"m","user":%s,"messages":[{"role":"system","content":%s},{"role":"user","content":%s}],
			"tools":[{"type":"function","function":{"name":"f","description":%s,"parameters":{"type":"object"}}}]}`, said, said, said, said))
		req.Header.Set("Api-Key", strings.ReplaceAll(p.Secret, "\n", ""))
		req.URL.RawQuery = url.Values{"key": {p.Secret}}.Encode()
		res, err := w.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if have, err := io.ReadAll(res.Body); err != nil || string(have) != came {
			t.Errorf("%s: the client saw %q, %v", p.Rule, have, err)
		}
	}
	planted := secretstest.Plant(52)
	for i, p := range planted {
		branch := fmt.Sprint("b", i)
		ask(p, branch, `{"error":{"message":`+text(p.Text())+`}}`, http.StatusBadRequest)
		ask(p, branch, p.Text(), http.StatusBadGateway)
		ask(p, branch, "no JSON: "+p.Text(), http.StatusOK)
		ask(p, branch, fmt.Sprintf(`{"id":"c-%d","model":"m","choices":[{"index":0,"finish_reason":%s,"message":{"role":"assistant","content":%s,"reasoning_content":%s}}]}`,
			i, text(p.Text()), text(p.Text()), text(p.Text())), http.StatusOK)
		w.settle()
		if stored(t, w.repo, p.Secret) {
			t.Errorf("a secret of %s is stored", p.Rule)
		}
		var words []string
		for c, err := range w.repo.Log(t.Context(), branch, tract.LogOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			words = append(words, c.Block.String())
		}
		if len(words) != 7 || words[0] != secrets.Mask(p.Text()) && strings.TrimSpace(p.Text()) != "" {
			t.Errorf("%s: on the branch is %q", p.Rule, words)
		}
	}
}

// TestInstructionsWithSecretsAreUnchanged has instructions of which one changes, and
// another has a secret.
func TestInstructionsWithSecretsAreUnchanged(t *testing.T) {
	key := secretstest.Plant(53)[15].Secret
	w := newWire(t, "mem:", says("A1", "A2"))
	main := recorder.On(t.Context(), "main")
	w.ask(main, "system: The key is "+key, "system: It is Monday.", "Q1")
	w.ask(main, "system: The key is "+key, "system: It is Tuesday.", "Q1", "A1", "Q2")
	w.want(map[string]string{"main": "The key is " + secrets.Mask(key) + " | It is Monday. | Q1 | A1 | It is Tuesday. | Q2 | A2"})
}

// TestWithoutMaskingSecretsAreCompared turns masking off: the stored text is the original, and two
// user messages that differ only in a password, which have equal masks, are two.
func TestWithoutMaskingSecretsAreCompared(t *testing.T) {
	repo, err := tract.Open(t.Context(), "mem:", tract.OpenOptions{Settings: map[string]string{"secrets.mask": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(t, "mem:", says("A1", "A2"))
	w.repo = repo
	w.transport = recorder.New(repo, recorder.Options{Unmasked: true})
	w.client = &http.Client{Transport: w.transport}
	one, other := "redis://:Tr0ub4dorX@cache:6379", "redis://:Tr0ub4dorY@cache:6379"
	if secrets.Mask(one) != secrets.Mask(other) {
		t.Fatal("the masks tell the passwords apart")
	}
	w.ask(recorder.On(t.Context(), "a"), one)
	w.ask(recorder.On(t.Context(), "a"), other)
	w.want(map[string]string{"a": one + " | A1", "a/fork-2": other + " | A2"})
}

// TestErrorsOfTheRecorderShowNoKey: what is told may quote what came.
func TestErrorsOfTheRecorderShowNoKey(t *testing.T) {
	for _, p := range secretstest.Plant(54) {
		if said := (&recorder.Error{Path: "/v1", Err: errors.New("it says " + p.Text())}).Error(); strings.Contains(said, p.Secret) {
			t.Errorf("%s: %s", p.Rule, said)
		}
	}
}
