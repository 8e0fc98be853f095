package bolt

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestOnlyWhatWasHashedIsLaidTogether folds a frame that changed in memory after it was
// written, and one that another process wrote of an object with a wrong id: neither
// reaches a pack, and the first is whole again for whoever reads the journal.
func TestOnlyWhatWasHashedIsLaidTogether(t *testing.T) {
	s, path := fresh(t)
	in := idle(t, s)
	h, w := writing(t, in)
	put(t, w, "refs/heads/a", "what was said")
	over := h.journal.over
	at := bytes.Index(over.frames[0].b, []byte("what was said"))
	if at < 0 || !over.frames[0].own || !over.objects(over.now())[0].sound {
		t.Fatal("what this process has written is not known to be its own")
	}
	over.frames[0].b[at] ^= 1
	err := in.checkpoint(h, nil)
	if damaged := (*objects.CorruptError)(nil); !errors.As(err, &damaged) {
		t.Errorf("what changed in memory is folded: %v", err)
	}
	h.close()
	h.side.release()
	in.over = nil // as another process would see it
	apply(t, s, "refs/heads/b", "more")
	idle(t, s)
	if got, err := audit(t, path, true); err != nil || len(got.damages) > 0 {
		t.Errorf("after a fold that was refused: %v, %+v", err, got.damages)
	}

	h, w = writing(t, in)
	wrong := batch("refs/heads/c", "a lie")
	wrong.Put[0].Data = []byte("another")
	g, lead, err := w.plan(wrong, "", objects.ID{}) // beneath who checks batches
	if err != nil || !lead {
		t.Fatal(lead, err)
	}
	if w.write(g); g.err != nil {
		t.Fatal(g.err)
	}
	h.close()
	h.side.release()
	in.over = nil
	h, _ = writing(t, in)
	defer h.side.release()
	defer h.close()
	for _, e := range h.journal.over.objects(h.journal.over.now()) {
		if e.sound {
			t.Error("what was read from the journal need not be hashed")
		}
	}
	err = in.checkpoint(h, nil)
	if damaged := (*objects.CorruptError)(nil); !errors.As(err, &damaged) || damaged.ID != wrong.Put[0].ID {
		t.Errorf("what another process wrote wrong is folded: %v", err)
	}
}
