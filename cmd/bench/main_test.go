package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBenchPrintsWhatItWrites(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "bench.json")
	var out, story bytes.Buffer
	args := []string{"-sizes", "3,30", "-time", "5ms", "-dir", dir, "-program", "", "-out", file}
	if err := run(t.Context(), args, &out, &story); err != nil {
		t.Fatalf("%v\n%s", err, &story)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(written, &r); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"JSON line, fdatasync", "commit", "commit, 64 goroutines, one branch, rate", "compile, again, 30 commits",
		"bare bbolt put", "commit, to a bare put", "walk of headers, 30 commits", "compile with a budget, 30 commits", "compile after a commit, 30 commits", "log of 20, new handle, 30 commits",
		"decode a chat stream", "decode a responses stream, allocated",
	} {
		if r.value(name) <= 0 {
			t.Errorf("%q was not measured", name)
		}
		if !strings.Contains(out.String(), name) {
			t.Errorf("%q is not in the table", name)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("it leaves %v behind, %v; want bench.json only", left, err)
	}
}

func TestBadSizesAreRefused(t *testing.T) {
	for _, sizes := range []string{"", "0", "1000,many"} {
		if err := run(t.Context(), []string{"-sizes", sizes, "-dir", t.TempDir()}, &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
			t.Errorf("-sizes %q is taken", sizes)
		}
	}
}
