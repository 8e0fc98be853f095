//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fatal are the system calls that change files.
var fatal = []string{"write", "pwrite64", "fdatasync", "fsync", "ftruncate", "rename", "renameat", "linkat", "unlinkat", "openat"}

var tracedCall = regexp.MustCompile(`(?m)^(?:\[pid +\d+\] |\d+ +)?(\w+)\(`)

// traced runs a command under strace.
func traced(t *testing.T, dir string, env []string, log string, options, args []string) *exec.Cmd {
	t.Helper()
	all := append([]string{"-f", "-qq", "-o", log, "-e", "trace=" + strings.Join(fatal, ",")}, options...)
	cmd := exec.CommandContext(t.Context(), "strace", append(append(all, os.Args[0]), args...)...)
	cmd.Dir, cmd.Env = dir, append(env[:len(env):len(env)], faultEnv+"=0", "GOMAXPROCS=1")
	return cmd
}

// TestKillAtEverySystemCall kills every command that changes something at each of its
// system calls that change files, and lets each of them fail. strace counts the calls
// of a thread, so that some of the later ones are not met.
func TestKillAtEverySystemCall(t *testing.T) {
	if os.Getenv("TRACT_TORTURE") == "" {
		t.Skip("make torture")
	}
	if err := exec.Command("strace", "-qq", "-o", os.DevNull, "true").Run(); err != nil {
		t.Skip("no strace that may trace here")
	}
	base, env := faultDir(t)
	dir, log := filepath.Join(t.TempDir(), "work"), filepath.Join(t.TempDir(), "log")
	faults := 0
	for _, args := range verbs {
		restore(t, base, dir)
		if out, err := traced(t, dir, env, log, nil, args).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		for _, m := range tracedCall.FindAllStringSubmatch(string(text), -1) {
			counts[m[1]]++
		}
		for call, n := range counts {
			for when := 1; when <= min(n, 40); when++ {
				for _, what := range []string{"signal=SIGKILL", "error=EIO", "error=ENOSPC"} {
					if call == "openat" && what != "signal=SIGKILL" {
						continue // the runtime of Go opens files too
					}
					restore(t, base, dir)
					out, err := traced(t, dir, env, log, []string{"-e", fmt.Sprintf("inject=%s:%s:when=%d", call, what, when)}, args).Output()
					heard := string(out)
					if err != nil && !strings.HasPrefix(what, "signal") {
						heard = "" // a part of the answer may be out
					}
					if err := usable(t, dir, env, args, heard, base); err != nil {
						t.Errorf("%v, %s at %s %d of %d: %v", args, what, call, when, n, err)
					}
					faults++
				}
			}
		}
	}
	t.Logf("%d faults", faults)
}
