package main

import (
	"bytes"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

// damageFile flips a bit of some words wherever a file has them, as a disk may:
// damage FILE WORDS. They have to be there.
func damageFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: damage FILE WORDS")
	}
	file, words := []byte(ts.ReadFile(args[0])), []byte(args[1])
	if !bytes.Contains(file, words) {
		ts.Fatalf("%s does not have %q", args[0], words)
	}
	for at := bytes.Index(file, words); at >= 0; at = bytes.Index(file, words) {
		file[at] ^= 1
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), file, 0o600))
}
