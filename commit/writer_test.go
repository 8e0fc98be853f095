package commit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// TestEqualOriginsArePutOnce, wherever their drafts stand: the sides of a conversation take turns.
func TestEqualOriginsArePutOnce(t *testing.T) {
	var drafts []Draft
	for i := range 30 {
		origin := &Origin{Source: SourceImport, Model: fmt.Sprint("model-", i%10)}
		drafts = append(drafts, Draft{Block: content.User(fmt.Sprint("words ", i)), Origin: origin})
	}
	commits, put, err := Write(nil, drafts...)
	if err != nil {
		t.Fatal(err)
	}
	origins := map[objects.ID]int{}
	for _, o := range put {
		if o.Kind == objects.KindOrigin {
			origins[o.ID]++
		}
	}
	for i, c := range commits {
		if c.OriginID != drafts[i].Origin.Object().ID || origins[c.OriginID] != 1 {
			t.Errorf("the origin of commit %d was put %d times", i, origins[c.OriginID])
		}
	}
}

// TestWriteRefusesWhatCannotBeRead: a commit of such a block would be damage.
func TestWriteRefusesWhatCannotBeRead(t *testing.T) {
	block := content.Text{Of: content.KindToolCall, Name: "search", Text: "{}"}
	if _, put, err := Write(nil, Draft{Block: block}); err == nil {
		t.Errorf("a text of kind %s was written: %d objects", block.Kind(), len(put))
	} else if !strings.Contains(err.Error(), "want a content.ToolCall") {
		t.Errorf("the error does not say what would be right: %v", err)
	}
	if _, err := ContentID(block); err == nil {
		t.Error("it has an id")
	}
}
