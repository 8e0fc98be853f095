//go:build !windows

package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/safefile"
)

func init() {
	roles["umask"], roles["read"], roles["full"] = roleUmask, roleRead, roleFull
}

// roleUmask creates a store under a umask: MASK PATH.
func roleUmask(args []string) error {
	mask, err := strconv.ParseInt(args[0], 8, 0)
	if err != nil {
		return err
	}
	syscall.Umask(int(mask))
	ctx := context.Background()
	s, err := objects.Open(ctx, args[1], objects.Options{Create: true})
	if err != nil {
		return err
	}
	return errors.Join(s.Apply(ctx, batch("refs/heads/main", "x")), s.Close())
}

func TestPermissionsWhateverTheUmask(t *testing.T) {
	for _, mask := range []string{"000", "022", "077", "777"} {
		top := filepath.Join(t.TempDir(), "top")
		dir := filepath.Join(top, "store")
		if err := child(t, "umask", mask, dir).Run(); err != nil {
			t.Errorf("umask %s: %v", mask, err)
			continue
		}
		for _, d := range []string{top, dir} {
			if info, err := os.Stat(d); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("umask %s: directory %s is %v, %v", mask, d, info.Mode(), err)
			}
		}
		files := names(t, dir)
		for name, mode := range files {
			if mode != 0o600 {
				t.Errorf("umask %s: %s is %v", mask, name, mode)
			}
		}
		if len(files) != 4 {
			t.Errorf("umask %s: files %v", mask, files)
		}
	}
}

func TestUnsafeFilesAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"a file that the group can write":        func(p string) error { return os.Chmod(p, 0o620) },
		"a file that all can write":              func(p string) error { return os.Chmod(p, 0o602) },
		"a directory that the group can write":   func(p string) error { return os.Chmod(filepath.Dir(p), 0o770) },
		"a directory that all can write":         func(p string) error { return os.Chmod(filepath.Dir(p), 0o1777) },
		"a symbolic link in the place of a file": func(p string) error { return errors.Join(os.Rename(p, p+".away"), os.Symlink(p+".away", p)) },
	} {
		s, path := fresh(t)
		apply(t, s, "refs/heads/main", "x")
		if err := spoil(path); err != nil {
			t.Fatal(err)
		}
		for _, o := range []objects.Options{{}, {Create: true}, {ReadOnly: true}} {
			if _, err := objects.Open(t.Context(), path, o); !errors.Is(err, objects.ErrUnsafe) {
				t.Errorf("%s: %v, want ErrUnsafe", name, err)
			}
		}
	}
}

func TestNothingIsCreatedInAnUnsafeFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := objects.Open(t.Context(), dir, objects.Options{Create: true}); !errors.Is(err, objects.ErrUnsafe) {
		t.Errorf("a store where all can write: %v, want ErrUnsafe", err)
	}
	if left := names(t, dir); len(left) != 0 {
		t.Errorf("it was made nevertheless: %v", left)
	}
}

// TestFilesOfAnotherUserAreRefused gives files of a store to another user, which takes root; that
// root is refused as everybody else is, TestOwners of package safefile shows to all.
func TestFilesOfAnotherUserAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	const nobody = 65534
	for _, name := range []string{".", fileName, fileName + "-journal", fileName + "-lock", fileName + "-turn"} {
		s, path := fresh(t)
		apply(t, s, "refs/heads/main", "x")
		dir := filepath.Dir(path)
		if err := os.Chown(filepath.Join(dir, name), nobody, nobody); err != nil {
			t.Fatal(err)
		}
		for files, safe := range map[safefile.Policy]bool{{}: false, {Owner: nobody + 1}: false, {Owner: nobody}: true, {Any: true}: true} {
			s, err := objects.Open(t.Context(), dir, objects.Options{Files: files})
			if (err == nil) != safe || err != nil && !errors.Is(err, objects.ErrUnsafe) {
				t.Errorf("%s belongs to user %d, %+v: %v", name, nobody, files, err)
			}
			if err == nil {
				apply(t, s, "refs/heads/"+strconv.Itoa(files.Owner), "y")
			}
		}
	}
}

// TestSpecialFilesAreRefused puts what is not a regular file in the place of each file
// of a store. Nothing waits for it, reads it or takes it for damage.
func TestSpecialFilesAreRefused(t *testing.T) {
	kinds := map[string]func(path string) error{
		"a named pipe":    func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"a folder":        func(p string) error { return os.Mkdir(p, 0o700) },
		"a symbolic link": func(p string) error { return os.Symlink("/dev/zero", p) },
	}
	for kind, make := range kinds {
		for _, suffix := range []string{"", "-journal", "-lock", "-turn"} {
			s, path := fresh(t)
			apply(t, s, "refs/heads/main", "x")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Remove(path+suffix), make(path+suffix)); err != nil {
				t.Fatal(err)
			}
			want := objects.ErrUnsafe
			if suffix == "" && kind != "a symbolic link" {
				want = objects.ErrFormat // nobody says that it was a store
			}
			for _, o := range []objects.Options{{}, {Create: true}, {ReadOnly: true}} {
				if _, err := objects.Open(t.Context(), filepath.Dir(path), o); !errors.Is(err, want) || errors.Is(err, objects.ErrCorrupt) {
					t.Errorf("%s in the place of %s: %v, want %v", kind, filepath.Base(path+suffix), err, want)
				}
			}
		}
		// A store that is to be made beside a journal that is none.
		path := filepath.Join(t.TempDir(), fileName)
		if err := errors.Join(os.Chmod(filepath.Dir(path), 0o700), make(path+"-journal")); err != nil {
			t.Fatal(err)
		}
		if _, err := objects.Open(t.Context(), path, objects.Options{Create: true}); !errors.Is(err, objects.ErrUnsafe) {
			t.Errorf("create beside %s in the place of the journal: %v", kind, err)
		}
	}
}

// roleRead reads a store that it cannot write, and then tries to write: PATH.
func roleRead(args []string) error {
	ctx := context.Background()
	for _, o := range []objects.Options{{ReadOnly: true}, {}} {
		s, err := objects.Open(ctx, args[0], o)
		if err != nil {
			return err
		}
		for o, err := range s.Get(ctx, []objects.ID{object("x").ID}) {
			if err != nil {
				return err
			}
			fmt.Printf("read %s\n", o.Data)
		}
		err = s.Apply(ctx, batch("refs/heads/b", "y"))
		fmt.Printf("write: %v %t %t\n", err, errors.Is(err, fs.ErrPermission), errors.Is(err, objects.ErrReadOnly))
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}

// TestReadingNeedsNoRightToWrite runs as a user for whom permissions count: root
// becomes nobody.
func TestReadingNeedsNoRightToWrite(t *testing.T) {
	for _, locks := range []bool{true, false} {
		dir, err := os.MkdirTemp("", "tract-read") // t.TempDir is closed to others
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o700); _ = os.RemoveAll(dir) })
		s := mustOpen(t, dir, objects.Options{Create: true})
		apply(t, s, "refs/heads/main", "x")
		path := filepath.Join(dir, fileName)
		if !locks {
			if err := errors.Join(os.Remove(gatePath(path)), os.Remove(ticketPath(path))); err != nil {
				t.Fatal(err)
			}
		}
		cmd := child(t, "read", dir)
		if cmd.Path, err = copyBinary(dir); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 {
			const nobody = 65534
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			for name := range names(t, dir) {
				if err := os.Chown(filepath.Join(dir, name), nobody, nobody); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chown(dir, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
		for name := range names(t, dir) {
			if name != "binary" {
				if err := os.Chmod(filepath.Join(dir, name), 0o400); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("lock files %t: %v", locks, err)
		}
		if strings.Count(string(out), "read x\n") != 2 || !strings.Contains(string(out), "false true\n") ||
			!strings.Contains(string(out), "true false\n") || !strings.Contains(string(out), path) {
			t.Errorf("lock files %t:\n%s", locks, out)
		}
	}
}

func copyBinary(dir string) (string, error) {
	b, err := os.ReadFile(os.Args[0])
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "binary")
	return path, os.WriteFile(path, b, 0o700)
}

// roleFull writes until the disk is full, as far as this process can tell, reads,
// and writes on when there is room again: PATH.
func roleFull(args []string) error {
	signal.Ignore(syscall.SIGXFSZ)
	ctx := context.Background()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	limit := old
	limit.Cur = 5_000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	_, err := objects.Open(ctx, args[0], objects.Options{Create: true})
	if !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), args[0]) {
		return fmt.Errorf("full while creating: %w", err)
	}
	if left, err := filepath.Glob(filepath.Join(args[0], "*.db*")); err != nil || len(left) != 2 {
		return fmt.Errorf("creation on a full disk left %v, %w", left, err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	s, err := objects.Open(ctx, args[0], objects.Options{Create: true})
	if err != nil {
		return err
	}
	n := 0
	for limit.Cur = 100_000; limit.Cur < 3_000_000; limit.Cur += 350_000 {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		for err = nil; err == nil; n++ {
			err = s.Apply(ctx, batch(fmt.Sprint("refs/heads/", n), fmt.Sprint(n, strings.Repeat("x", 20_000))))
		}
		n--
		if !errors.Is(err, syscall.EFBIG) || objects.IsUnknown(err) || !strings.Contains(err.Error(), args[0]) {
			return fmt.Errorf("full at %d: %w", limit.Cur, err)
		}
		if refs, err := s.Refs(ctx, objects.RefQuery{}); err != nil || len(refs) != n {
			return fmt.Errorf("full at %d: %d refs of %d, %w", limit.Cur, len(refs), n, err)
		}
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	fmt.Println(n)
	return errors.Join(s.Apply(ctx, batch("refs/heads/last", "last")), s.Close())
}

func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	out, err := child(t, "full", dir).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := mustOpen(t, dir, objects.Options{})
	n := mustNumber(t, strings.TrimSpace(string(out)))
	refs, err := s.Refs(t.Context(), objects.RefQuery{})
	if err != nil || len(refs) != n+1 {
		t.Errorf("%d refs, %v; want %d", len(refs), err, n+1)
	}
	for _, r := range refs {
		if _, err := objects.Read(t.Context(), s, r.Target); err != nil {
			t.Error(err)
		}
	}
	wantSound(t, filepath.Join(dir, fileName))
}

func TestPipeIsNotAStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := objects.Open(t.Context(), path, objects.Options{Create: true}); !errors.Is(err, objects.ErrFormat) {
		t.Errorf("open a pipe: %v", err)
	}
}
