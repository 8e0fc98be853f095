package spool

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func open(t *testing.T, folder string, o Options) *Spool {
	t.Helper()
	if o.Memory == 0 {
		o.Memory = 64 << 20
	}
	s, err := Open(folder, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// find returns the frames of the newest finished exchange with a label; none if it is not kept.
func find(folder, label string) ([]Frame, error) {
	paths, err := listPaths(filepath.Join(folder, "done"), "")
	paths = slices.DeleteFunc(paths, func(path string) bool { return !strings.HasSuffix(path, "-"+label) })
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	data, err := os.ReadFile(paths[len(paths)-1])
	return parseFrames(data), err
}

// waiting returns the number of exchanges of a folder that are not committed.
func waiting(folder string) int {
	names, _ := filepath.Glob(filepath.Join(folder, "live-*", "*-*"))
	return len(names)
}

// TestUncommittedExchangesAreRecovered ends a process with one exchange in the middle, one
// that has ended and one that was committed. The next process takes over the first two.
func TestUncommittedExchangesAreRecovered(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder, Options{})
	half, whole, done := s.Begin(nil), s.Begin(nil), s.Begin(nil)
	half.Write(Frame{'q', []byte("half")})
	whole.Write(Frame{'q', []byte("whole")})
	whole.Write(Frame{'e', nil})
	done.Write(Frame{'q', []byte("raw")})
	done.Finish("label", 0, func() []Frame { return []Frame{{'q', []byte("masked")}} })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if waiting(folder) != 2 {
		t.Errorf("%d wait, want 2", waiting(folder))
	}
	kept, _ := filepath.Glob(filepath.Join(folder, "done", "*"))
	if len(kept) != 1 {
		t.Fatalf("committed: %q", kept)
	}
	if data, err := os.ReadFile(kept[0]); err != nil || !bytes.Contains(data, []byte("masked")) || bytes.Contains(data, []byte("raw")) {
		t.Errorf("the committed exchange has %q, %v", data, err)
	}
	if frames, err := find(folder, "label"); err != nil || len(frames) != 1 || string(frames[0].Data) != "masked" {
		t.Errorf("found %v, %v", frames, err)
	}
	if info, err := os.Stat(kept[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	next, other := open(t, folder, Options{}), open(t, folder, Options{})
	var words []string
	recovered := func(f *File, frames []Frame) {
		words = append(words, string(frames[0].Data))
		f.Finish("label", 0, func() []Frame { return nil })
	}
	if err := next.Recover(recovered); err != nil || len(words) != 2 || words[0] != "half" || words[1] != "whole" {
		t.Errorf("recovered %q, %v", words, err)
	}
	if err := other.Recover(recovered); err != nil || len(words) != 2 { // next still runs
		t.Errorf("recovered again: %q, %v", words, err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if waiting(folder) != 0 {
		t.Errorf("%d wait", waiting(folder))
	}
	if err := Clear(folder); err != nil {
		t.Error(err)
	}
	if kept, _ := filepath.Glob(filepath.Join(folder, "done", "*")); len(kept) > 0 {
		t.Errorf("left: %q", kept)
	}
}

// TestBoundsOfTheDisk: the oldest committed exchange goes, and what does not fit at all is
// dropped and counted.
func TestBoundsOfTheDisk(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder, Options{Disk: 100})
	for range 3 {
		f := s.Begin(nil)
		f.Finish("label", 0, func() []Frame { return []Frame{{'q', make([]byte, 40)}} })
	}
	long := s.Begin(nil)
	long.Write(Frame{'q', make([]byte, 200)})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	kept, _ := filepath.Glob(filepath.Join(folder, "done", "*"))
	if !long.Lost() || len(kept) > 2 {
		t.Errorf("dropped: %t, %d kept", long.Lost(), len(kept))
	}
}

// TestBoundOfTheMemory: with a queue of a few bytes an exchange is dropped instead of waiting.
func TestBoundOfTheMemory(t *testing.T) {
	s := open(t, t.TempDir(), Options{Memory: 10})
	f := s.Begin(nil)
	f.Write(Frame{'q', make([]byte, 50)})
	f.Write(Frame{'e', nil})
	if frames, err := f.Read(); err == nil || !f.Lost() {
		t.Errorf("it was written: %v", frames)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func FuzzParseFrames(f *testing.F) {
	f.Add(appendFrame(appendFrame(nil, Frame{'q', []byte("a")}), Frame{'e', nil}))
	f.Fuzz(func(t *testing.T, data []byte) {
		var again []byte
		for _, frame := range parseFrames(data) {
			again = appendFrame(again, frame)
		}
		if got := parseFrames(again); len(got) != len(parseFrames(data)) {
			t.Errorf("%d frames, %d when written again", len(parseFrames(data)), len(got))
		}
	})
}

// TestOverwrittenBytesAreNoFrames parses what a process that is killed during replaceContent leaves
// behind: the kept frames, and no bytes of those that were replaced.
func TestOverwrittenBytesAreNoFrames(t *testing.T) {
	kept := appendFrame(nil, Frame{'q', []byte("kept")})
	old := appendFrame(appendFrame(kept, Frame{'Q', bytes.Repeat([]byte("old "), 100)}), Frame{'E', []byte("end")})
	fresh := appendFrame(nil, Frame{'Q', bytes.Repeat([]byte("new "), 50)})
	zeroed := append(bytes.Clone(kept), make([]byte, len(old)-len(kept))...)
	halfZeroed := append(append(bytes.Clone(kept), make([]byte, 5)...), old[len(kept)+5:]...)
	half := append(bytes.Clone(kept), fresh[:20]...)
	for name, data := range map[string][]byte{"zeros": zeroed, "zeros before old bytes": halfZeroed, "truncated": kept, "a part of the new bytes": half} {
		if frames := parseFrames(data); len(frames) != 1 || string(frames[0].Data) != "kept" {
			t.Errorf("%s: %q", name, frames)
		}
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(old); err != nil {
		t.Fatal(err)
	}
	for _, begin := range []int{len(kept), 0} {
		if err := replaceContent(f, int64(begin), fresh); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(got, append(bytes.Clone(kept[:begin]), fresh...)) {
			t.Errorf("the file has %d bytes after %d: %v", len(got), begin, err)
		}
	}
}

// TestFinishKeepsTheFirstFrames finishes exchanges whose frames are written, and one whose frames still wait
// to be written: the kept ones stay, and the rest is replaced.
func TestFinishKeepsTheFirstFrames(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder, Options{})
	body := func(name string) []byte {
		return bytes.Repeat([]byte(name+" body "), map[bool]int{false: 1, true: maxPending}[strings.HasSuffix(name, "long")])
	}
	names := []string{"written", "written long", "waiting", "waiting long"}
	finish := func(name string, written bool) {
		f := s.Begin(nil)
		f.Write(Frame{'q', []byte(name + " head")})
		f.Write(Frame{'Q', body(name)})
		f.Write(Frame{'A', []byte(name + " raw response")})
		if written {
			if frames, err := f.Read(); err != nil || len(frames) != 3 {
				t.Errorf("%s: %q, %v", name, frames, err)
			}
		}
		f.Finish(name, 2, func() []Frame { return []Frame{{'A', []byte("masked")}} })
	}
	for _, name := range names {
		finish(name, strings.HasPrefix(name, "written"))
	}
	s.Begin(nil).Finish("nothing", 2, func() []Frame { return []Frame{{'A', []byte("masked")}} })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "nothing") {
		var want []Frame
		if name != "nothing" {
			want = []Frame{{'q', []byte(name + " head")}, {'Q', body(name)}, {'A', []byte("masked")}}
		}
		if have, err := find(folder, name); err != nil || !reflect.DeepEqual(have, want) {
			t.Errorf("%s: %d frames, %v", name, len(have), err)
		}
	}
}

// TestFolderWithPatternCharacters clears a spool whose path filepath.Glob would take for a pattern.
func TestFolderWithPatternCharacters(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a[x]b*")
	s := open(t, folder, Options{})
	f := s.Begin(nil)
	f.Write(Frame{'Q', []byte("words")})
	f.Finish("label", 0, func() []Frame { return []Frame{{'Q', []byte("words")}} })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if frames, err := find(folder, "label"); err != nil || len(frames) != 1 {
		t.Fatalf("%d frames are kept: %v", len(frames), err)
	}
	if err := Clear(folder); err != nil {
		t.Fatal(err)
	}
	if frames, err := find(folder, "label"); err != nil || len(frames) != 0 {
		t.Errorf("%d frames are left after Clear: %v", len(frames), err)
	}
}

// TestWaitingExchangesKeepNoFileOpen: as many exchanges may wait for a store as the disk has room for,
// and a process may only have some hundred files open.
func TestWaitingExchangesKeepNoFileOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux lists the open files of a process")
	}
	s := open(t, t.TempDir(), Options{})
	for range 50 {
		f := s.Begin(nil)
		f.Write(Frame{'q', []byte("waits")})
		if _, err := f.Read(); err != nil {
			t.Fatal(err)
		}
	}
	handles, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, h := range handles {
		if path, err := os.Readlink("/proc/self/fd/" + h.Name()); err == nil && strings.HasPrefix(path, s.liveFolder) {
			count++
		}
	}
	if count > 1 { // the lock
		t.Errorf("%d files of the spool are open", count)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestRecoveredFilesCountForTheDisk: what an earlier process has left takes room too.
func TestRecoveredFilesCountForTheDisk(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder, Options{})
	s.Begin(nil).Write(Frame{'q', make([]byte, 80)})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, folder, Options{Disk: 100})
	if err := s.Recover(func(*File, []Frame) {}); err != nil {
		t.Fatal(err)
	}
	f := s.Begin(nil)
	f.Write(Frame{'q', make([]byte, 80)})
	if err := s.Close(); err != nil || !f.Lost() {
		t.Errorf("dropped: %t, %v", f.Lost(), err)
	}
}

// TestFinishOfALostExchange finishes exchanges whose frames did not fit on the disk: nothing of them is kept.
func TestFinishOfALostExchange(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder, Options{Disk: 100})
	for _, size := range []int{60, 2 * maxPending} {
		f := s.Begin(nil)
		f.Write(Frame{'q', make([]byte, 60)})
		f.Write(Frame{'Q', make([]byte, size)})
		if _, err := f.Read(); err == nil || !f.Lost() {
			t.Errorf("it was written: %v", err)
		}
		f.Finish("label", 2, func() []Frame { return []Frame{{'A', []byte("response")}} })
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if frames, err := find(folder, "label"); err != nil || len(frames) != 0 {
		t.Errorf("%d frames, %v", len(frames), err)
	}
}
