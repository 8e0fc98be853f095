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

// TestLinesComeInOrder: whatever the lines are like, however the file gives them and
// wherever it ends, every line comes once, with its number.
func TestLinesComeInOrder(t *testing.T) {
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
				line, err := l.nextRestOrLine()
				if err != nil {
					return list, err
				}
				list = append(list, fmt.Sprint(l.lineNumber, " ", string(line)))
			}
			return list, nil
		}
		first := rnd.IntN(len(want))
		before, _ := read(first)
		rest, err := read(len(want) + 5)
		if !slices.Equal(append(before, rest...), want) {
			t.Fatalf("seed %d: %q come, then %q, want %q", seed, before, rest, want)
		}
		if ends := k < 4 && err == io.EOF || k == 4 && errors.Is(err, broken); !ends {
			t.Errorf("seed %d: the end is %v", seed, err)
		}
	}
}

// TestAFileThatGivesNothing, again and again, ends with an error.
func TestAFileThatGivesNothing(t *testing.T) {
	l := newLines("log", iotest.ErrReader(nil))
	if _, err := l.nextRestOrLine(); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
}
