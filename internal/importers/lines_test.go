package importers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// TestLinesAreGivenAgain: whatever the lines are like, however the file gives them and
// wherever it ends, what is held comes again, then the rest.
func TestLinesAreGivenAgain(t *testing.T) {
	broken := errors.New("the disk is broken")
	readers := []func(io.Reader) io.Reader{
		func(r io.Reader) io.Reader { return r },
		iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader,
		func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(broken)) },
	}
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var text strings.Builder
		var want []string
		for n := range rnd.IntN(60) + 1 {
			line := fmt.Sprint(n) + strings.Repeat("x", rnd.IntN(1<<rnd.IntN(9)))
			want = append(want, fmt.Sprint(2*n+1, " ", line))
			text.WriteString(line + "\n\n")
		}
		k := int(seed) % len(readers)
		l := newLines("log", readers[k](strings.NewReader(text.String())))
		l.src = bufio.NewReaderSize(l.src, 1<<rnd.IntN(8))
		read := func(most int) (list []string, err error) {
			for len(list) < most {
				line, err := l.next()
				if err != nil {
					return list, err
				}
				list = append(list, fmt.Sprint(l.n, " ", string(line)))
			}
			return list, nil
		}
		first, held := rnd.IntN(len(want)), rnd.IntN(len(want)+5)
		before, _ := read(first)
		if !slices.Equal(before, want[:first]) {
			t.Fatalf("seed %d: %q before any is held, want %q", seed, before, want[:first])
		}
		l.hold()
		once, _ := read(held)
		l.rewind()
		again, err := read(len(want) + 5)
		if !slices.Equal(again, want[first:]) || !slices.Equal(once, again[:len(once)]) || len(once) != min(held, len(again)) {
			t.Fatalf("seed %d: %q are held, and then come %q", seed, once, again)
		}
		if ends := k < 4 && err == io.EOF || k == 4 && errors.Is(err, broken); !ends {
			t.Errorf("seed %d: the end is %v", seed, err)
		}
	}
}

// TestAFileThatGivesNothing, again and again, ends with an error.
func TestAFileThatGivesNothing(t *testing.T) {
	l := newLines("log", iotest.ErrReader(nil))
	if _, err := l.next(); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
}
