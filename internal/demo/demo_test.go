package demo_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/internal/demo"
)

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestServerRefusesAResultWithoutSignedReasoning plays the recordings in order.
func TestServerRefusesAResultWithoutSignedReasoning(t *testing.T) {
	s, err := demo.Serve(0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, want := range []string{"message_stop", demo.CallID} {
		if code, body := post(t, s.URL()+"/v1/messages", "{}"); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("response %d: code %d: %s", i+1, code, body)
		}
	}
	if s.Err() != nil {
		t.Error(s.Err())
	}
	if code, body := post(t, s.URL()+"/v1/messages", "{}"); code != http.StatusUnprocessableEntity || !strings.Contains(body, "signed reasoning") {
		t.Errorf("without the signature: code %d: %s", code, body)
	}
	if s.Err() == nil {
		t.Error("the server has no error")
	}
}
