package importers

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// TestPlainLinesAreReadLikeOthers: how a file is written makes no difference to what is
// read, nor to where it is damaged.
func TestPlainLinesAreReadLikeOthers(t *testing.T) {
	all := func(lines ...string) (list []Entry, err error) {
		for e, err := range Read("log", strings.NewReader(strings.Join(lines, "\n")), Auto) {
			if err != nil {
				return list, err
			}
			list = append(list, e)
		}
		return list, nil
	}
	var lines, others []string
	for i := range 200 {
		role, words := []string{"user", "assistant"}[i%2], fmt.Sprintf("a \"word\" \\ %d\n", i)
		lines = append(lines, fmt.Sprintf(`{"role":%q,"content":%q}`, role, words))
		others = append(others, fmt.Sprintf(`{ "content" : %q, "role":%q}`, words, role))
	}
	want, err := all(others...)
	if err != nil || len(want) != 200 {
		t.Fatal(len(want), err)
	}
	have, err := all(lines...)
	if err != nil || said(have) != said(want) {
		t.Errorf("%d entries, %v, want\n%s", len(have), err, said(want))
	}
	for _, c := range []struct {
		damage string
		at     int
		want   string
	}{
		{`{"role":"user","content":"a \x"}`, 100, "log:101: "},
		{`{"role":"user","content":"a \x"}`, 200, "log:201: the last line is damaged: "},
		{"{\"role\":\"user\",\"content\":\"a\x01\"}", 7, "log:8: "},
		{`{"role":"user","content":"a`, 100, "log:101: "},
		{`{"role":"user","content":"a`, 200, "log:201: the last line is damaged: "},
	} {
		have, err := all(slices.Insert(slices.Clone(lines), c.at, c.damage)...)
		last := strings.Contains(c.want, "the last line")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "the last line") != last || said(have) != said(want) {
			t.Errorf("%s in line %d: %d entries, %v", c.damage, c.at+1, len(have), err)
		}
	}
	bad, other := `{"role":"user","content":"a \x"}`, `{"content":"a \x","role":"user"}`
	if _, err := all(lines[0], bad, other); err == nil || strings.Contains(err.Error(), "last") || !strings.HasPrefix(err.Error(), "log:2: ") {
		t.Errorf("a damaged line before another one: %v", err)
	}
	if have, err := all(`{"role":"user","content":"a"}`, `{"role":"user","content":"b"}`); err != nil || len(have) != 2 {
		t.Errorf("%+v, %v", have, err)
	}
	r := io.MultiReader(strings.NewReader(strings.Join(lines[:100], "\n")), &failing{})
	n := 0
	for _, err = range Read("log", r, Auto) {
		n++
	}
	if err == nil || !strings.Contains(err.Error(), "the disk is gone") || n != 100 {
		t.Errorf("a reader that fails: %d, %v", n, err)
	}
}

// failing is a reader that gives an error.
type failing struct{}

func (*failing) Read([]byte) (int, error) { return 0, fmt.Errorf("the disk is gone") }
