package bolt

import (
	"bytes"
	"testing"
)

// TestAPieceGrowsWhereItLies makes pieces longer and shorter: the last one stays in its
// place, and one that was read elsewhere takes nothing from who was given one since.
func TestAPieceGrowsWhereItLies(t *testing.T) {
	a := &arena{bytes: make([]byte, 0, 1<<10)}
	first := a.takeBytes(100)
	longer := a.resize(first, 200)
	if &longer[0] != &first[0] || len(longer) != 200 {
		t.Error("the last piece does not stay in its place")
	}
	if b := a.resize(longer, 50); &b[0] != &first[0] || len(b) != 50 {
		t.Error("the last piece does not become shorter in its place")
	}
	other := a.takeBytes(100)
	copy(other, bytes.Repeat([]byte("o"), 100))
	elsewhere := bytes.Repeat([]byte("e"), 100)
	b := a.resize(elsewhere, 150)
	if !bytes.Equal(b[:100], elsewhere) {
		t.Errorf("a piece that was read elsewhere is %q", b[:100])
	}
	clear(b)
	if !bytes.Equal(other, bytes.Repeat([]byte("o"), 100)) {
		t.Error("a piece that was read elsewhere lies where another does")
	}
}
