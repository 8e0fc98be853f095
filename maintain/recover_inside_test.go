package maintain

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestRecoverKeepsValidLogEntries: when one of the log is lost, those behind it in the
// chain of its ref are not taken over, all others are, as they were.
func TestRecoverKeepsValidLogEntries(t *testing.T) {
	from := objects.Memory()
	tips := map[string]objects.ID{}
	for i, name := range []string{"a", "b", "a", "b", "a", "b"} {
		name = "refs/heads/" + name
		o := objects.New(objects.KindContent, nil, nil, []byte{byte(i)})
		b := objects.Batch{Put: []objects.Object{o}, Refs: []objects.RefUpdate{{Name: name, Old: tips[name], New: o.ID}}}
		if err := from.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		tips[name] = o.ID
	}
	log, err := from.Log(t.Context(), "", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(log)
	target, err := objects.Open(t.Context(), filepath.Join(t.TempDir(), "new"), objects.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = target.Close() }()
	lost := slices.Delete(slices.Clone(log), 2, 3) // the second move of a
	twice := objects.NewLogEntry(7, objects.Note{}, slices.Repeat(log[5].Refs, 2))
	w := &recovery{ctx: t.Context(), target: target, entries: append(lost, twice)}
	if err := w.restoreRefLog(); err != nil {
		t.Fatal(err)
	}
	want := []objects.LogEntry{log[5], log[3], log[1], log[0]}
	if got, err := target.Log(t.Context(), "", 0, 0); err != nil || !reflect.DeepEqual(got, want) || w.result.Entries != len(want) {
		t.Errorf("the new store has %+v, %v, want %+v", got, err, want)
	}
}
