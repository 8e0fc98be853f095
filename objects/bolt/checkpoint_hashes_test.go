package bolt

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestOnlyHashedObjectsGoIntoPacks makes a checkpoint of a frame that changed in memory after it was
// written, and one that another process wrote of an object with a wrong id: neither
// reaches a pack, and the first is whole again for whoever reads the journal.
func TestOnlyHashedObjectsGoIntoPacks(t *testing.T) {
	s, path := fresh(t)
	in := idle(t, s)
	h, w := writing(t, in)
	put(t, w, "refs/heads/a", "what was said")
	record := h.mem.All(objectsBucket, h.mark)[0].Value
	record[bytes.Index(record, []byte("what was said"))] ^= 1
	err := in.checkpoint(h, h.mark)
	if damaged := (*objects.CorruptError)(nil); !errors.As(err, &damaged) {
		t.Errorf("what changed in memory is written by the checkpoint: %v", err)
	}
	h.closeFiles()
	h.lock.release()
	in.mem = nil // as another process would see it
	apply(t, s, "refs/heads/b", "more")
	idle(t, s)
	if got, err := audit(t, path, true); err != nil || len(got.damages) > 0 {
		t.Errorf("after a checkpoint that was refused: %v, %+v", err, got.damages)
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
	h.closeFiles()
	h.lock.release()
	in.mem = nil
	h, _ = writing(t, in)
	defer h.lock.release()
	defer h.closeFiles()
	err = in.checkpoint(h, h.mark)
	if damaged := (*objects.CorruptError)(nil); !errors.As(err, &damaged) || damaged.ID != wrong.Put[0].ID {
		t.Errorf("what another process wrote wrong is written by the checkpoint: %v", err)
	}
}
