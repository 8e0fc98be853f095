package format

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// TestLogShowsLinks: the first commit of a recorded conversation says where it came from, and
// the commits after it do not.
func TestLogShowsLinks(t *testing.T) {
	call := objects.Hash([]byte("call"))
	origin := &commit.Origin{Source: commit.SourceUser, Original: map[string]string{"parent_commit": call.String()}}
	commits, _, err := commit.Write(nil, commit.Draft{Block: content.User("look around"), Origin: origin}, commit.Draft{Block: content.User("more"), Origin: origin})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range commits {
		c.Origin = origin
		var out bytes.Buffer
		New(&out, Options{}).Log(Commit{Commit: c}, LogStyle{})
		if have := strings.Contains(out.String(), "Started:  by "+call.Short()); have != (i == 0) {
			t.Errorf("commit %d: %q", i, out.String())
		}
	}
}
