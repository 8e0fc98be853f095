package memtable

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

// TestTableIsAMapAtEveryMark compares a table at each of its moments with a map of that
// moment.
func TestTableIsAMapAtEveryMark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const buckets = 2
		table := New(buckets)
		var moments [][buckets]map[string][]byte
		var marks []Mark
		now := [buckets]map[string][]byte{{}, {}}
		for i := range rapid.IntRange(0, 40).Draw(t, "changes") {
			c := journal.Change{Bucket: rapid.IntRange(0, buckets-1).Draw(t, "bucket"), Key: []byte{byte(rapid.IntRange(0, 9).Draw(t, "key"))}}
			if rapid.Bool().Draw(t, "set") {
				c.Value = []byte{byte(i)}
			}
			table.Add([]journal.Change{c})
			for b := range now {
				now[b] = maps.Clone(now[b])
			}
			now[c.Bucket][string(c.Key)] = c.Value
			moments, marks = append(moments, now), append(marks, table.Mark())
			if rapid.Bool().Draw(t, "list") {
				table.Sorted(c.Bucket, table.Mark())
			}
		}
		for i, m := range marks {
			for b, want := range moments[i] {
				keys := slices.Sorted(maps.Keys(want))
				list := table.Sorted(b, m)
				if len(list) != len(keys) {
					t.Fatalf("after %d changes bucket %d lists %d keys of %d", i+1, b, len(list), len(keys))
				}
				for k, e := range list {
					if string(e.Key) != keys[k] || !bytes.Equal(e.Value, want[keys[k]]) || (e.Value == nil) != (want[keys[k]] == nil) {
						t.Fatalf("after %d changes key %x of bucket %d is %v", i+1, e.Key, b, e.Value)
					}
				}
				for key := range byte(10) {
					value, ok := table.Get(b, []byte{key}, m)
					wanted, there := want[string([]byte{key})]
					if ok != there || !bytes.Equal(value, wanted) || (value == nil) != (wanted == nil) {
						t.Fatalf("after %d changes key %x of bucket %d is %v, %v", i+1, key, b, value, ok)
					}
				}
				for _, prefix := range [][]byte{nil, {byte(i % 10)}} {
					want := slices.DeleteFunc(slices.Clone(list), func(e Entry) bool { return !bytes.HasPrefix(e.Key, prefix) })
					got := table.SortedWithPrefix(b, prefix, m)
					if !slices.EqualFunc(got, want, equalEntries) {
						t.Fatalf("after %d changes bucket %d has with the prefix %x %v, want %v", i+1, b, prefix, got, want)
					}
				}
				all := slices.Clone(table.All(b, m))
				slices.SortFunc(all, func(a, b Entry) int { return bytes.Compare(a.Key, b.Key) })
				if !slices.EqualFunc(all, list, equalEntries) {
					t.Fatalf("after %d changes bucket %d lists %v in the order of arrival, and %v by key", i+1, b, all, list)
				}
			}
		}
	})
}

func equalEntries(a, b Entry) bool { return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) }
