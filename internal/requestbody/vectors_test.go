package requestbody

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

var update = flag.Bool("update", false, "write testdata/vectors/bodies.json anew")

// TestVectors reads the bodies of testdata/vectors/bodies.json, as any program must. Another version of the
// compression may write other frames.
func TestVectors(t *testing.T) {
	const file = "../../testdata/vectors/bodies.json"
	type vector struct {
		ID      string
		Parents []objects.ID
		Data    string // the object
		Body    string
		Masked  bool
	}
	bodies := []string{`{"n":[1]}`, `{"n":[1,2]}`, `{"n":[1,2]}`, `{"n":[1,2],"key":"[masked:password:5e88]"}`, strings.Repeat("the same text ", 400), strings.Repeat("another text ", 400) + strings.Repeat("the same text ", 40)}
	if *update {
		var list []vector
		var base *Body
		for _, text := range bodies {
			b, made := Encode([]byte(text), strings.Contains(text, "masked"), base)
			obj := made[len(made)-1]
			list = append(list, vector{obj.ID.String(), obj.Parents, hex.EncodeToString(obj.Data), text, b.Masked})
			base = b
		}
		text, err := json.MarshalIndent(list, "", "  ")
		if err == nil {
			err = os.WriteFile(file, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []vector
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	for i, v := range list {
		data, err := hex.DecodeString(v.Data)
		if err != nil {
			t.Fatal(err)
		}
		obj := objects.New(objects.KindBody, v.Parents, nil, data)
		put(t, s, obj)
		b, err := Read(t.Context(), s, obj.ID)
		if err != nil || obj.ID.String() != v.ID || string(b.Data) != v.Body || b.Masked != v.Masked {
			t.Errorf("body %d is read as %+v, %v", i, b, err)
		}
		d, err := parse(obj)
		if err != nil || i == 1 && (d.size != 11 || d.chain != 2 || d.prefix != 7 || d.suffix != 2) {
			t.Errorf("record %d is %+v, %v", i, d, err)
		}
	}
	if len(list) != len(bodies) {
		t.Errorf("%d vectors", len(list))
	}
}
