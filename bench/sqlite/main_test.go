package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// talk gives the answers to some requests.
func talk(t *testing.T, requests ...request) (all []answer) {
	t.Helper()
	var in, out strings.Builder
	for _, q := range requests {
		if err := json.NewEncoder(&in).Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	if err := serve(strings.NewReader(in.String()), &out); err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(out.String())); d.More(); {
		var a answer
		if err := d.Decode(&a); err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	if len(all) != len(requests) {
		t.Fatalf("%d answers to %d requests", len(all), len(requests))
	}
	return all
}

func TestMessagesComeBack(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "a.db")
	opened := talk(t, request{Do: "open", Path: db})[0]
	if strings.Contains(opened.Error, "CGO_ENABLED=0") {
		t.Skipf("no C compiler: %s", opened.Error)
	}
	if opened.Error != "" || opened.Version == "" {
		t.Fatalf("open: %+v", opened)
	}
	file := filepath.Join(dir, "a.jsonl")
	lines := fmt.Sprintf(`{"id":"%064d","time":1,"role":"user","content":"four"}`+"\n"+`{"id":"%064d","time":2,"role":"assistant","content":"fives"}`+"\n", 1, 2)
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	got := talk(t, request{Do: "open", Path: db}, request{Do: "load", Path: file}, request{Do: "insert", Role: "user", Text: "six666"}, request{Do: "read"}, request{Do: "pack"})
	for i, a := range got {
		if a.Error != "" || a.Took <= 0 {
			t.Errorf("answer %d: %+v", i, a)
		}
	}
	if want := int64(len("four" + "fives" + "six666")); got[3].Bytes != want {
		t.Errorf("%d bytes come back, want %d", got[3].Bytes, want)
	}
	if got[4].Bytes < 4096 {
		t.Errorf("the file has %d bytes", got[4].Bytes)
	}
}

func TestInvalidRequestsGetAnError(t *testing.T) {
	for i, a := range talk(t, request{Do: "insert", Text: "x"}, request{Do: "read"}, request{Do: "pack"}, request{Do: "load"}, request{Do: "fly"}) {
		if a.Error == "" {
			t.Errorf("request %d is done", i)
		}
	}
}
