package commit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// TestAWriterThatIsUsedAgain makes what Write makes, however often its memory is used
// again, and every object is what its id says until then.
func TestAWriterThatIsUsedAgain(t *testing.T) {
	var drafts []Draft
	for i := range 300 {
		origin := &Origin{Source: SourceImport, Model: fmt.Sprint("model-", i%3)}
		if i%7 == 0 {
			origin.Original = map[string]string{"id": fmt.Sprint(i)}
		}
		text := strings.Repeat(fmt.Sprint("words ", i, " "), i*i%800)
		drafts = append(drafts, Draft{Block: content.User(text), Time: time.UnixMilli(int64(i)), Author: "ada", Key: fmt.Sprint("key/", i), Origin: origin})
	}
	want, put, err := Write(nil, drafts...)
	if err != nil {
		t.Fatal(err)
	}
	have := map[objects.ID]bool{}
	var w Writer
	var parent *Commit
	for i := range drafts {
		c, err := w.Write(parent, &drafts[i])
		if err != nil || c.ID != want[i].ID || c.Origin != want[i].Origin || c.Depth != want[i].Depth {
			t.Fatalf("commit %d is %+v, %v; want %+v", i, c, err, want[i])
		}
		if parent = c; i%50 >= 25 { // the first ones are held
			kept := *c
			parent = &kept
			w.Forget()
		}
		if i%50 != 49 {
			continue
		}
		for _, o := range w.Put() {
			if have[o.ID] = true; o.Check() != nil {
				t.Fatal(o.Check())
			}
		}
		kept := *c
		parent = &kept
		w.Reset(10)
		w.Grow(20)
	}
	for _, o := range put {
		if !have[o.ID] {
			t.Errorf("%s %s was not put", o.Kind, o.ID.Short())
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
