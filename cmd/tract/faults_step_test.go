//go:build !windows

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tract-vcs/tract/internal/faulttest"
)

// traced runs a command with a fault, or none.
func traced(t *testing.T, dir string, env, args []string, fault *faulttest.Fault) *faulttest.Trace {
	t.Helper()
	cmd := program(t, dir, append(env[:len(env):len(env)], "GOMAXPROCS=1"), 0, args)
	trace, err := faulttest.Run(dir, fault, cmd)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return trace
}

// memory is a folder that costs no sync, where there is one.
func memory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "tract") //nolint:usetesting // not where tests have theirs
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "work")
}

// TestFaultAtEveryStepOfEveryCommand kills every command that changes something at each of
// its steps, and lets each of them fail or write a part. The store is sound then,
// nothing that was acknowledged is lost, and the same command works.
func TestFaultAtEveryStepOfEveryCommand(t *testing.T) {
	t.Parallel()
	base, env, commits := faultDir(t)
	dir := memory(t)
	faults, struck, step := 0, 0, faultRounds(397, 97, 1)
	for _, args := range verbs {
		restore(t, base, dir)
		whole := traced(t, dir, env, args, nil)
		if whole.Code != 0 {
			t.Fatalf("%v: %s", args, whole.Output("2"))
		}
		for at := range whole.Attempts() {
			for _, fault := range []faulttest.Fault{
				{At: at},
				{At: at, Errno: syscall.EIO},
				{At: at, Errno: syscall.ENOSPC},
				{At: at, Last: at + 1, Errno: syscall.ENOSPC, Short: true},
			} {
				if faults++; faults%step != 0 {
					continue
				}
				restore(t, base, dir)
				trace := traced(t, dir, env, args, &fault)
				heard := trace.Output("1")
				if trace.Code > 0 {
					heard = "" // a part of the answer may be out
				}
				what := fmt.Sprintf("%v, step %d of %d, error %d, short %t", args, at, whole.Attempts(), fault.Errno, fault.Short)
				if said := trace.Output("2"); trace.Code > 0 && (!strings.Contains(said, "tract: error: ") || strings.Contains(said, "goroutine ")) {
					t.Errorf("%s: code %d: %s", what, trace.Code, said)
				}
				if err := usable(t, dir, env, args, heard, commits); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if trace.Struck {
					struck++
				}
			}
		}
	}
	t.Logf("%d faults struck", struck)
	if struck == 0 {
		t.Error("no fault ever struck")
	}
}

// TestPowerFailureDuringEveryCommand makes the folders that a power failure can leave of every
// command that changes something. What bears the name of a copy is sound.
func TestPowerFailureDuringEveryCommand(t *testing.T) {
	t.Parallel()
	base, env, commits := faultDir(t)
	dir := memory(t)
	states, step := 0, faultRounds(211, 41, 1)
	for _, args := range verbs {
		restore(t, base, dir)
		trace := traced(t, dir, env, args, nil)
		if trace.Code != 0 {
			t.Fatalf("%v: %s", args, trace.Output("2"))
		}
		for c := range trace.Crashes(0, faultRounds(0, 0, 2), 1) {
			if states++; states%step != 0 {
				continue
			}
			if err := c.Write(dir); err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf("%v, %s", args, c.What)
			for name, verb := range map[string]string{"copy": "backup", "saved": "recover"} {
				if !c.Has(name + "/tract.db") {
					if args[0] == verb && c.After == len(trace.Steps) {
						t.Errorf("%s: it was done, and %s is not there", what, name)
					}
					continue
				}
				if out, err := program(t, dir, env, 0, []string{"--dir", name, "fsck"}).CombinedOutput(); err != nil {
					t.Errorf("%s: %s: %s", what, name, out)
				}
			}
			if err := usable(t, dir, env, args, saidBy(trace, c.After), commits); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	t.Logf("%d states, every %dth was tried", states, step)
}

// saidBy is what a command had said on its standard output after so many steps.
func saidBy(trace *faulttest.Trace, steps int) string {
	part := *trace
	part.Steps = trace.Steps[:steps]
	return part.Output("1")
}
