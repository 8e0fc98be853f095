//go:build !windows

package bolt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tract-vcs/tract/internal/faulttest"
	"github.com/tract-vcs/tract/objects"
)

func init() { roles["reuse"], roles["purge"] = roleReuse, rolePurge }

// roleReuse appends until a checkpoint is made, forbids every file to grow beyond the size
// of the journal, and appends until that fails: PATH. It says how many bytes it appended,
// and the size of the journal.
func roleReuse(args []string) error {
	signal.Ignore(syscall.SIGXFSZ)
	ctx := context.Background()
	s, err := objects.Open(ctx, args[0], objects.Options{Create: true})
	if err != nil {
		return err
	}
	in, ok := objects.As[*store](s)
	if !ok {
		return errors.New("another engine")
	}
	in.checkpointLength = 256 << 10
	const size = 4 << 10
	n := 0
	next := func() error {
		err := s.Apply(ctx, batch(fmt.Sprint("refs/heads/", n), fmt.Sprint(n, strings.Repeat("x", size))))
		n++
		return err
	}
	sizes := func() (file, journal int64, err error) {
		f, err := os.Stat(filepath.Join(args[0], fileName))
		if err != nil {
			return 0, 0, err
		}
		j, err := os.Stat(journalPath(filepath.Join(args[0], fileName)))
		if err != nil {
			return 0, 0, err
		}
		return f.Size(), j.Size(), nil
	}
	empty, journal, err := sizes()
	for file := empty; file == empty && err == nil; file, journal, err = sizes() {
		if err := next(); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = uint64(journal)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	first := n
	for err = nil; err == nil; {
		err = next()
	}
	if !errors.Is(err, syscall.EFBIG) {
		return err
	}
	fmt.Println((n-first-1)*size, journal)
	return nil
}

// TestFullDiskLeavesTheJournalForUse fills the disk after a checkpoint: appends go on until
// the journal, whose frames are all in the file, is full again.
func TestFullDiskLeavesTheJournalForUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	out, err := child(t, "reuse", dir).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var appended, size int
	if _, err := fmt.Sscan(string(out), &appended, &size); err != nil {
		t.Fatal(err)
	}
	if appended < size*3/4 {
		t.Errorf("%d bytes were appended on a full disk, with a journal of %d bytes", appended, size)
	}
	wantSound(t, filepath.Join(dir, fileName))
}

// rolePurge purges one object: PATH ID.
func rolePurge(args []string) error {
	ctx := context.Background()
	s, err := objects.Open(ctx, args[0], objects.Options{})
	if err != nil {
		return err
	}
	id, err := objects.ParseID(args[1])
	if err != nil {
		return err
	}
	_, err = objects.Purge(ctx, s, []objects.Tombstone{{ID: id, Time: time.Now(), Why: "test"}}, nil)
	return errors.Join(err, s.Close())
}

// TestPurgeOnANearlyFullDisk purges one object of a store with many packs and adds up what
// every step of it writes: at no time do the files take more room than before and that of
// the pack that is rewritten, a few times.
func TestPurgeOnANearlyFullDisk(t *testing.T) {
	root := filepath.Join(memory(t), "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "s")
	s := mustOpen(t, dir, objects.Options{Create: true})
	random, noise := rand.NewChaCha8([32]byte{}), make([]byte, 3000) // compression makes it no smaller
	var target objects.Object
	for i := range 30 {
		var list []objects.Object
		for k := range 20 {
			_, _ = random.Read(noise)
			list = append(list, object(fmt.Sprintf("<words %d-%d>%s", i, k, noise)))
		}
		if i == 15 {
			target = list[7]
		}
		if err := s.Apply(t.Context(), objects.Batch{Put: list}); err != nil {
			t.Fatal(err)
		}
		mustCheckpoint(t, s)
	}
	idle(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := child(t, "purge", dir, target.ID.String())
	cmd.Env, cmd.Stderr = append(cmd.Env, "GOMAXPROCS=1"), nil
	trace, err := faulttest.Run(root, nil, []*exec.Cmd{cmd}...)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil || trace.Code != 0 {
		t.Fatalf("%v: %s", err, trace.Output("2"))
	}
	const pack = 20 * 3100
	if most := mostRoom(trace); most > 4*pack+64<<10 {
		t.Errorf("a purge of an object in a pack of %d bytes took %d bytes more of the disk", pack, most)
	}
	wantNowhere(t, filepath.Join(dir, fileName), "<words 15-7>")
	wantClean(t, filepath.Join(dir, fileName))
}

// mostRoom returns how many bytes more than before the files took at most during a trace. A
// file that was removed is taken to keep its room.
func mostRoom(trace *faulttest.Trace) (most int64) {
	sizes := map[int]int64{}
	for i, b := range trace.Files {
		sizes[i] = int64(len(b))
	}
	more := int64(0)
	for _, s := range trace.Steps {
		size := sizes[s.File]
		switch s.Kind {
		case faulttest.Write:
			size = max(size, s.At+int64(len(s.Data)))
		case faulttest.Truncate:
			size = s.Size
		default:
			continue
		}
		more += size - sizes[s.File]
		sizes[s.File], most = size, max(most, more)
	}
	return most
}
