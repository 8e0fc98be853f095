package tract_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/internal/secrets/secretstest"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
)

// TestSecretsOfRequestsAndErrorsAreInNoFile puts a secret of every form into the headers and the URL
// of a request, and has the provider repeat it in refusals, finish reasons, usage, reasoning and
// truncated responses. By default none of it is in the store, in an error or in the client's log.
func TestSecretsOfRequestsAndErrorsAreInNoFile(t *testing.T) {
	for mode, want := range map[string]int{"traces": 0, "all": 0, "off": 1} {
		repo, dir := onDisk(t, tract.OpenOptions{Settings: map[string]string{"secrets.mask": mode}})
		planted, logged := secretstest.Plant(41), 0
		for i, p := range planted {
			wire := newLeakyWire(t, p)
			b := repo.Branch("b" + strconv.Itoa(i))
			must(b.AppendUser(t.Context(), "hello"))(t)
			for _, how := range []string{"refused", "busy", "stopped", "said", "broken", "in the stream"} {
				wire.how = how
				logged += len(wire.log)
				_, err := b.Generate(t.Context(), wire.client, tract.AskOptions{NoStream: !(how == "broken" || how == "in the stream")})
				if broken := (*tract.IncompleteError)(nil); errors.As(err, &broken) {
					must(b.TakeRescue(t.Context(), broken.Rescued, tract.RescueOptions{}))(t)
				} else if (how == "stopped" || how == "said") != (err == nil) {
					t.Fatalf("%s, %s: %v", p.Rule, how, err)
				}
				if lines := strings.Join(wire.log, "\n"); strings.Contains(lines, p.Secret) {
					t.Errorf("%s, %s: the log has it: %s", p.Rule, how, lines)
				}
				if err != nil && (strings.Contains(err.Error(), p.Secret) || strings.Contains(fmt.Sprintf("%+v", err), p.Secret)) {
					t.Errorf("%s, %s: the error has it: %v", p.Rule, how, err)
				}
				if api := (*llm.APIError)(nil); errors.As(err, &api) && strings.Contains(string(api.Raw)+api.Message+api.RequestID, p.Secret) {
					t.Errorf("%s, %s: the error has it inside: %+v", p.Rule, how, api)
				}
			}
		}
		if mode == "traces" && logged == 0 {
			t.Error("the client logged nothing")
		}
		found := leaked(t, dir, repo, planted)
		if want == 0 && len(found) > 0 || want > 0 && len(found) != len(planted) {
			t.Errorf("%s: %d of %d secrets are in the store: %v", mode, len(found), len(planted), found)
		}
	}
}

// leakyWire is a client whose requests carry a secret, and its provider.
type leakyWire struct {
	client *providers.Client
	how    string
	log    []string
}

func newLeakyWire(t *testing.T, p secretstest.Planted) *leakyWire {
	t.Helper()
	w := &leakyWire{}
	said := string(must(json.Marshal(p.Text()))(t))
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		out.Header().Set("X-Secret", strings.Map(printable, p.Text()))
		switch w.how {
		case "busy":
			out.Header().Set("Retry-After-Ms", "1")
			out.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintf(out, `{"error":{"message":%s}}`, said)
		case "refused":
			out.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(out, `{"error":{"message":%s,"type":%s,"param":%s,"code":%s}}`, said, said, said, said)
		case "stopped":
			fmt.Fprintf(out, `{"id":"r","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hm."},"finish_reason":%s}],"usage":{"total_tokens":3,"note":%s}}`, said, said)
		case "said":
			fmt.Fprintf(out, `{"id":"r2","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hm.","reasoning_content":%s},"finish_reason":"stop"}]}`, said)
		case "broken":
			fmt.Fprintf(out, "data: {\"id\":\"r3\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":%s}}]}\n\n", said)
		default:
			fmt.Fprintf(out, "data: {\"id\":\"r4\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hm.\"}}]}\n\n")
			fmt.Fprintf(out, "data: {\"error\":{\"message\":%s}}\n\n", said)
		}
	}))
	t.Cleanup(server.Close)
	base := must(url.Parse(server.URL + "/v1"))(t)
	base.User = url.UserPassword("ada", p.Secret)
	base.RawQuery = url.Values{"key": {p.Secret}}.Encode()
	w.client = must(providers.Open("here", providers.Config{
		Dialect: "chat", BaseURL: base.String(), Model: "m", Retries: 1, Log: func(line string) { w.log = append(w.log, line) }, Headers: map[string]string{"X-Api-Key": strings.Map(printable, p.Secret)},
	}))(t)
	return w
}

// printable leaves out what cannot stand in a header.
func printable(r rune) rune {
	if r < ' ' {
		return -1
	}
	return r
}
