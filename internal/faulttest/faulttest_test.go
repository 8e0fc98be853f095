package faulttest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tract-vcs/tract/internal/faulttest"
)

// roleEnv makes the test binary be the program that is followed.
const roleEnv = "FAULTTEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) == "" {
		os.Exit(m.Run())
	}
	if len(os.Args) == 2 {
		faulttest.FilterCalls()
	}
	if err := work(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// work makes a file durable under another name first, and says so.
func work(dir string) error {
	name := filepath.Join(dir, "sub", "file")
	if err := os.Mkdir(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.Create(name + ".new")
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Repeat("a", 1000))
	if err = errors.Join(err, f.Sync(), f.Close(), os.Rename(name+".new", name)); err != nil {
		return err
	}
	for _, path := range []string{filepath.Dir(name), dir} {
		d, err := os.Open(path)
		if err = errors.Join(err, d.Sync(), d.Close()); err != nil {
			return err
		}
	}
	fmt.Println("done")
	if f, err = os.OpenFile(name, os.O_RDWR, 0); err != nil {
		return err
	}
	_, err = f.WriteAt([]byte("bb"), 600)
	return errors.Join(err, f.Truncate(800), f.Close())
}

func follow(t *testing.T, fault *faulttest.Fault, more ...string) (*faulttest.Trace, string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{dir}, more...)...)
	cmd.Env = append(os.Environ(), roleEnv+"=1")
	trace, err := faulttest.Run(dir, fault, cmd)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return trace, dir
}

var wantKinds = []faulttest.Kind{
	faulttest.MakeDir, faulttest.Create, faulttest.Write, faulttest.Sync, faulttest.Rename, faulttest.SyncDir,
	faulttest.SyncDir, faulttest.Say, faulttest.Open, faulttest.Write, faulttest.Truncate,
}

func TestEveryStepIsNoted(t *testing.T) {
	trace, _ := follow(t, nil)
	var got []faulttest.Kind
	for _, s := range trace.Steps {
		got = append(got, s.Kind)
	}
	if !slices.Equal(got, wantKinds) || trace.Code != 0 || trace.Struck || trace.Output("1") != "done\n" {
		t.Fatalf("%v, code %d, said %q", got, trace.Code, trace.Output("1"))
	}
	if w := trace.Steps[2]; w.Name != "sub/file.new" || len(w.Data) != 1000 || w.At != 0 {
		t.Errorf("first write: %s at %d, %d bytes", w.Name, w.At, len(w.Data))
	}
	if r := trace.Steps[4]; r.From != "sub/file.new" || r.Name != "sub/file" || r.File != trace.Steps[2].File {
		t.Errorf("rename: %+v", r)
	}
	if w := trace.Steps[9]; string(w.Data) != "bb" || w.At != 600 {
		t.Errorf("second write: %q at %d", w.Data, w.At)
	}
}

// TestFilterLosesNoStep runs the program without FilterCalls too: it is followed all the same, and
// takes the same steps.
func TestFilterLosesNoStep(t *testing.T) {
	filtered, _ := follow(t, nil)
	whole, _ := follow(t, nil, "without a filter")
	if !reflect.DeepEqual(filtered.Steps, whole.Steps) {
		t.Errorf("with a filter\n%+v\nwithout\n%+v", filtered.Steps, whole.Steps)
	}
}

// TestFaultsAreInjected makes every step fail, write a part, or be the last.
func TestFaultsAreInjected(t *testing.T) {
	whole, _ := follow(t, nil)
	for at := range whole.Attempts() {
		trace, _ := follow(t, &faulttest.Fault{At: at, Errno: syscall.ENOSPC})
		if !trace.Struck || trace.Code != 1 || !strings.Contains(trace.Output("2"), syscall.ENOSPC.Error()) {
			t.Errorf("step %d fails: code %d, %q", at, trace.Code, trace.Output("2"))
		}
		if trace, _ = follow(t, &faulttest.Fault{At: at}); !trace.Struck || trace.Code != -1 || trace.Attempts() != at {
			t.Errorf("killed at step %d: code %d, %d steps", at, trace.Code, trace.Attempts())
		}
	}
	trace, dir := follow(t, &faulttest.Fault{At: 2, Last: 3, Errno: syscall.EIO, Short: true})
	b, err := os.ReadFile(filepath.Join(dir, "sub", "file"))
	if err != nil || len(b) != 512 || trace.Code != 1 {
		t.Errorf("a part of a write: %d bytes, %v, code %d", len(b), err, trace.Code)
	}
}

// TestCrashesLeaveWhatIsDurable: what was said to be done is whole in every state, and
// what was not synced comes in every form.
func TestCrashesLeaveWhatIsDurable(t *testing.T) {
	trace, _ := follow(t, nil)
	said := slices.Index(wantKinds, faulttest.Say)
	forms := map[string]bool{}
	for c := range trace.Crashes(0, 5, 1) {
		dir := filepath.Join(t.TempDir(), "crash")
		if err := c.Write(dir); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "sub", "file"))
		if (err == nil) != c.Has("sub/file") {
			t.Errorf("%s: %v", c.What, err)
		}
		if c.After <= said {
			if forms[fmt.Sprint("early ", c.Has("sub/file"), c.Has("sub/file.new"))] = true; c.Has("sub/file") && string(b) != strings.Repeat("a", 1000) {
				t.Errorf("%s: it has its name and %d bytes", c.What, len(b))
			}
			continue
		}
		if err != nil || len(b) < 800 {
			t.Fatalf("%s: %d bytes, %v", c.What, len(b), err)
		}
		forms[fmt.Sprint(len(b), string(b[599:603]))] = true
	}
	for _, want := range []string{
		"early false false", "early false true", "early true false",
		"1000aaaa", "1000abba", "800aaaa", "800abba",
	} {
		if !forms[want] {
			t.Errorf("no state is %q: %v", want, forms)
		}
	}
}

// TestLaterSyncDoesNotCoverAFailedOne checks that a successful sync does not make durable what an
// earlier, failed one did not.
func TestLaterSyncDoesNotCoverAFailedOne(t *testing.T) {
	trace := &faulttest.Trace{Files: [][]byte{[]byte("old")}, Names: map[string]int{"file": 0}, Steps: []faulttest.Step{
		{Kind: faulttest.Write, Data: []byte("new"), Name: "file"},
		{Kind: faulttest.Sync, Before: 1, Failed: true},
		{Kind: faulttest.Sync, Before: 2},
		{Kind: faulttest.Say},
	}}
	got := map[string]bool{}
	for c := range trace.Crashes(4, 0, 1) {
		dir := t.TempDir()
		if err := c.Write(dir); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "file"))
		if err != nil {
			t.Fatal(err)
		}
		got[string(b)] = true
	}
	if !got["old"] || !got["new"] {
		t.Errorf("the file is one of %v", got)
	}
}
