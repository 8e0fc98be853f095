package commit

import (
	"fmt"
	"testing"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// BenchmarkParse reads the header of a commit as a walk does.
func BenchmarkParse(b *testing.B) {
	var tip *Commit
	var last objects.Object
	for i := range 10 {
		commits, put, err := Write(tip, Draft{Block: content.User(fmt.Sprint("message ", i)), Time: time.UnixMilli(1784000000000), Author: "ada"})
		if err != nil {
			b.Fatal(err)
		}
		tip, last = commits[0], put[len(put)-1]
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(last); err != nil {
			b.Fatal(err)
		}
	}
}
