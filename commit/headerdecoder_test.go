package commit

import (
	"reflect"
	"testing"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// FuzzDecodeHeaderFast compares the fast decoder of headers with the plain one: what the fast one
// accepts, the plain one reads alike. The fast one accepts the records of ordinary commits.
func FuzzDecodeHeaderFast(f *testing.F) {
	var tip *Commit
	for i, d := range []Draft{
		{Block: content.System("rules"), Author: "ada", Time: time.UnixMilli(-5)},
		{Block: content.User("why?"), Key: Key{Text: "k"}, Index: 300, Priority: priority.Pinned, Time: time.UnixMilli(1784000000000)},
		{Block: content.User("because"), Key: Key{Kind: KeyImport, Text: "7", Importer: "claude-code", Block: 2}, Author: "eve"},
		{Op: Annotate, Target: objects.ID{7}, Priority: priority.Skip},
	} {
		commits, put, err := Write(tip, d)
		if err != nil {
			f.Fatal(err)
		}
		tip = commits[0]
		record := put[len(put)-1].Data
		if _, ok := new(Commit).decodeHeaderFast(record, "ada"); !ok {
			f.Errorf("the fast decoder refuses record %d", i)
		}
		f.Add(record)
		for at := range record { // neighbors of each record: one byte changed, removed, or cut off there
			for _, b := range []byte{0, 1, record[at] + 1, record[at] ^ 0x80} {
				changed := append([]byte(nil), record...)
				changed[at] = b
				f.Add(changed)
			}
			f.Add(append(append([]byte(nil), record[:at]...), record[at+1:]...))
			f.Add(append([]byte(nil), record[:at]...))
		}
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		fast, plain := &Commit{}, &Commit{}
		fastLinks, ok := fast.decodeHeaderFast(record, "ada")
		if !ok {
			return
		}
		links, err := plain.decodeHeader(record)
		if err != nil || links != fastLinks || !reflect.DeepEqual(fast, plain) {
			t.Fatalf("record %x\nfast  %+v, links %b\nplain %+v, links %b, %v", record, fast, fastLinks, plain, links, err)
		}
	})
}
