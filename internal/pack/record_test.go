package pack

import (
	"reflect"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

func FuzzParseRecord(f *testing.F) {
	o := objects.New(objects.KindCommit, []objects.ID{{1}}, []objects.ID{{2}, {3}}, []byte("data"))
	f.Add(AppendRecord(nil, &o))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := ParseRecord(b, new([]objects.ID))
		if err != nil {
			return
		}
		again := AppendRecord(nil, &o)
		if p, err := ParseRecord(again, new([]objects.ID)); err != nil || !reflect.DeepEqual(p, o) || string(again) != string(b) {
			t.Fatalf("%+v and %+v, %v", o, p, err)
		}
	})
}
