package tract

import (
	"testing"
	"time"

	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/llm"
)

// TestReplayIgnoresForeignSettingsOfAManifest replays a request from a store with a forged manifest:
// it changes no setting that decides which provider is asked, with which headers, or what is masked.
func TestReplayIgnoresForeignSettingsOfAManifest(t *testing.T) {
	own, err := settings.Values{}.With("secrets.mask", "all")
	if err != nil {
		t.Fatal(err)
	}
	forged := map[string]string{
		"secrets.mask": "off", "base_url": "http://evil.example", "provider": "evil", "request.headers.X-Evil": "1", "core.pager": "evil",
		"no such setting": "1", "temperature": "0.5", "request.extra": `{"top_k":1}`,
	}
	repo := &Repo{settings: own, clock: time.Now}
	c, err := repo.replayOptions(&compile.Manifest{RequestSettings: forged}, &llm.Request{}, AskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := c.settings.Changed()
	for name, want := range map[string]string{
		"secrets.mask": "all", "base_url": "", "provider": "", "request.headers.X-Evil": "", "core.pager": "",
		"temperature": "0.5", "request.extra": `{"top_k":1}`,
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}
