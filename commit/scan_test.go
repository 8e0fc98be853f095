package commit

import (
	"reflect"
	"testing"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// FuzzScan holds the fast way of reading a record to the careful one: what it takes
// is read alike, and what Write makes it takes.
func FuzzScan(f *testing.F) {
	var tip *Commit
	for i, d := range []Draft{
		{Block: content.System("rules"), Author: "ada", Time: time.UnixMilli(-5)},
		{Block: content.User("why?"), Key: Key{Text: "k"}, Index: 300, Priority: priority.Pinned, Time: time.UnixMilli(1784000000000)},
		{Block: content.User("because"), Key: Key{Kind: KeyImport, Text: "7", Importer: "claude-code", Block: 2}, Time: time.UnixMilli(1784000000000)},
		{Op: Annotate, Target: objects.ID{7}, Priority: priority.Skip},
	} {
		commits, put, err := Write(tip, d)
		if err != nil {
			f.Fatal(err)
		}
		tip = commits[0]
		record := put[len(put)-1].Data
		if _, ok := new(Commit).scan(record, "ada"); !ok {
			f.Errorf("record %d, as it is written, is not taken", i)
		}
		f.Add(record)
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		fast, slow := &Commit{}, &Commit{}
		has, ok := fast.scan(record, "ada")
		if !ok {
			return
		}
		links := make([]objects.ID, 0, 3)
		for i := range 3 {
			if has&(1<<i) != 0 {
				links = append(links, objects.ID{byte(i + 1)})
			}
		}
		obj := objects.Object{Kind: objects.KindCommit, Links: links, Data: record}
		fastErr, slowErr := fast.finish(links, has), slow.parse(&obj)
		if (fastErr == nil) != (slowErr == nil) || !reflect.DeepEqual(fast, slow) {
			t.Fatalf("%x\nfast %+v, %v\nslow %+v, %v", record, fast, fastErr, slow, slowErr)
		}
	})
}
