//go:build !windows

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestImportUntilDiskIsFull: the batches before the one for which there was no room
// are in. The error says so, and the next import goes on from there.
func TestImportUntilDiskIsFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := append(os.Environ(), "HOME="+dir, "USER=ada", "TRACT_DIR=")
	const lines = 400
	var log strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for i := range lines {
		fmt.Fprintf(&log, `{"role":%q,"content":"`, []string{"user", "assistant"}[i%2])
		for range 1500 { // words that nothing makes shorter
			fmt.Fprintf(&log, "%x ", r.Uint64())
		}
		log.WriteString("\"}\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "log.jsonl"), []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := program(t, dir, env, 0, []string{"init"}).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var out, said strings.Builder
	c := program(t, dir, env, 5<<20, []string{"import", "log.jsonl", "--as", "b"})
	c.Stdout, c.Stderr = &out, &said
	var exit *exec.ExitError
	if err := c.Run(); !errors.As(err, &exit) || exit.ExitCode() != codeNo {
		t.Fatalf("there was room: %v, %s", err, &said)
	}
	added := regexp.MustCompile(`^b +(\d+) of`).FindStringSubmatch(out.String())
	if added == nil || added[1] == "0" {
		t.Fatalf("nothing came in: %s%s", &out, &said)
	}
	want := "tract: hint: file size limit reached (ulimit -f); " + added[1] + " blocks are imported, and the next import continues from there\n"
	if !strings.HasSuffix(said.String(), want) || strings.Contains(said.String(), "nothing was changed") {
		t.Errorf("it says %s want %s", &said, want)
	}
	n, err := strconv.Atoi(added[1])
	if err != nil || n >= lines {
		t.Fatal(n, err)
	}
	again, err := program(t, dir, env, 0, []string{"import", "log.jsonl", "--as", "b"}).CombinedOutput()
	if err != nil || !strings.Contains(string(again), fmt.Sprintf("%d of %d blocks added", lines-n, lines)) {
		t.Errorf("the next import, after %d blocks: %v, %s", n, err, again)
	}
}

// TestImportToFullDiskChangesNothing changes nothing, and says so.
func TestImportToFullDiskChangesNothing(t *testing.T) {
	t.Parallel()
	dir, env, _ := faultDir(t)
	out, err := program(t, dir, env, 1, []string{"import", "log.json", "--as", "b"}).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "nothing was changed\n") {
		t.Errorf("%v, %s", err, out)
	}
}
