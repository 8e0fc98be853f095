package bolt

import (
	"os"
	"testing"
)

// TestSalvageOfDamagedElements flips every bit of the elements of the pages that hold
// the packs: one element says where some hundred objects lie, and they are not lost by
// it. Of a large object that is the last on its page nobody else knows the size.
func TestSalvageOfDamagedElements(t *testing.T) {
	path, m := large(t, 300)
	files := takeFiles(t, path)
	b := files[path]
	for at := 2 * 4096; at < len(b); at += 4096 {
		count := int(order.Uint16(b[at+10:]))
		if order.Uint64(b[at:]) != uint64(at/4096) || order.Uint16(b[at+8:]) != leafPage || order.Uint32(b[at+12:]) < 2 || count > 8 {
			continue
		}
		for bit := 8 * 8; bit < 8*(pageHeader+count*elementSize); bit += rounds(61, 31, 1) {
			damaged := append([]byte(nil), b...)
			damaged[at+bit/8] ^= 1 << (bit % 8)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := audit(t, path, true)
			if lost := m.lostIn(got); err != nil || lost > 1 {
				t.Errorf("bit %d of page %d: %d objects are lost, %v: %.300v", bit, at/4096, lost, err, got.damages)
			}
		}
	}
}
