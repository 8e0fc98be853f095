package bolt

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/tract-vcs/tract/objects/bolt/internal/page"
	"github.com/tract-vcs/tract/objects/bolt/internal/salvage"
)

// valuesFile returns the bytes of a bbolt file with values of many sizes, some in an inline bucket,
// under keys of 4 bytes.
func valuesFile(t *testing.T) (file []byte, values map[string]string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	values = map[string]string{}
	err = db.Update(func(tx *bbolt.Tx) error {
		for bucket, n := range map[string]int{"small": 3, "large": 300} {
			b, err := tx.CreateBucket([]byte(bucket))
			if err != nil {
				return err
			}
			for i := range n {
				key := fmt.Sprintf("%c%03d", bucket[0], i)
				values[key] = key + " " + string(bytes.Repeat([]byte{'x'}, i*i/4))
				if err := b.Put([]byte(key), []byte(values[key])); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		err = db.Close()
	}
	if err == nil {
		file, err = os.ReadFile(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file, values
}

// findAll returns how many of the values are found in a file.
func findAll(t *testing.T, file []byte, pageSize int, values map[string]string) int {
	t.Helper()
	r, found := bytes.NewReader(file), map[string]bool{}
	err := salvage.Pages(t.Context(), r, r.Size(), pageSize, func(e salvage.Element) error {
		if key := string(e.Key); values[key] != "" && string(e.Read(r)) == values[key] {
			found[key] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// TestSalvageWithoutMetaAndBranchPages clears the meta pages and every branch page: all values are
// found, whether the page size is known or not.
func TestSalvageWithoutMetaAndBranchPages(t *testing.T) {
	file, values := valuesFile(t)
	size := os.Getpagesize()
	for at := 0; at < len(file); at += size {
		if at < 2*size || page.Order.Uint16(file[at+8:]) == page.BranchFlag {
			clear(file[at : at+size])
		}
	}
	for _, pageSize := range []int{size, 0} {
		if n := findAll(t, file, pageSize, values); n != len(values) {
			t.Errorf("pages of %d bytes: %d values of %d are found", pageSize, n, len(values))
		}
	}
}

// TestSalvageOfDamagedPageElements flips a bit of the elements of a leaf: one value is lost at most,
// since each begins where the one before it ends.
func TestSalvageOfDamagedPageElements(t *testing.T) {
	file, values := valuesFile(t)
	size := os.Getpagesize()
	r := rand.New(rand.NewPCG(1, 2))
	for at := 2 * size; at < len(file); at += size {
		count := int(page.Order.Uint16(file[at+10:]))
		if page.Order.Uint64(file[at:]) != uint64(at/size) || page.Order.Uint16(file[at+8:]) != page.LeafFlag || count < 2 || count > 40 {
			continue
		}
		bad := bytes.Clone(file)
		bit := 8*page.HeaderSize + r.IntN(8*count*page.ElementSize)
		bad[at+bit/8] ^= 1 << (bit % 8)
		if n := findAll(t, bad, size, values); n < len(values)-2 {
			t.Errorf("bit %d of page %d: %d values of %d are found", bit, at/size, n, len(values))
		}
	}
}

// TestSalvageReadsInProportionToTheFile adds up the sizes of what salvage would read: the middle of a large
// value is not taken for a page with large values.
func TestSalvageReadsInProportionToTheFile(t *testing.T) {
	file, _ := valuesFile(t)
	r, total := bytes.NewReader(file), int64(0)
	err := salvage.Pages(t.Context(), r, r.Size(), os.Getpagesize(), func(e salvage.Element) error {
		total += e.Size
		return nil
	})
	if err != nil || total > 4*r.Size() {
		t.Errorf("values of %d bytes are found in a file of %d, %v", total, r.Size(), err)
	}
}

// TestSalvageOfPageWithDamagedHeader damages the id and the type of each leaf that has values: its first element
// shows that it is one.
func TestSalvageOfPageWithDamagedHeader(t *testing.T) {
	file, values := valuesFile(t)
	size := os.Getpagesize()
	for at := 2 * size; at < len(file); at += size {
		if page.Order.Uint64(file[at:]) == uint64(at/size) && page.Order.Uint16(file[at+8:]) == page.LeafFlag && page.Order.Uint16(file[at+10:]) > 1 {
			file[at] ^= 0x40
			file[at+8] = 0xff
		}
	}
	if n := findAll(t, file, size, values); n != len(values) {
		t.Errorf("%d values of %d are found", n, len(values))
	}
}
