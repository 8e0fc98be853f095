package hugepage_test

import (
	"fmt"
	"testing"

	"github.com/tract-vcs/tract/internal/hugepage"
)

// The advice must not change what is in the memory, nor the memory beside it.
func TestAdviceKeepsContent(t *testing.T) {
	for _, size := range []int{0, 1, 4 << 20, 5<<20 + 123} {
		list := make([]byte, size)
		for i := range list {
			list[i] = byte(i * 7)
		}
		hugepage.Advise(list)
		for i, b := range list {
			if b != byte(i*7) {
				t.Fatalf("byte %d of %d: %d, want %d", i, size, b, byte(i*7))
			}
		}
	}
}

// BenchmarkFill shows what the advice gains for new memory.
func BenchmarkFill(b *testing.B) {
	for _, advised := range []bool{false, true} {
		b.Run(fmt.Sprint("advised=", advised), func(b *testing.B) {
			for b.Loop() {
				list := make([]byte, 16<<20)
				if advised {
					hugepage.Advise(list)
				}
				for i := 0; i < len(list); i += 4096 {
					list[i] = 1
				}
			}
		})
	}
}
