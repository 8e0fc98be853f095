package commit

import (
	"fmt"
	"testing"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// BenchmarkParse decodes the header of a commit as a walk does, and with the plain decoder.
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
	var c Commit
	b.Run("fast", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			author := c.Author
			c = Commit{}
			if _, ok := c.decodeHeaderFast(last.Data, author); !ok {
				b.Fatal("the fast decoder refuses the record")
			}
		}
	})
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c = Commit{}
			if _, err := c.decodeHeader(last.Data); err != nil {
				b.Fatal(err)
			}
		}
	})
}
