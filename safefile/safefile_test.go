//go:build !windows

package safefile

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOpenRefusesWhatIsNotARegularFile(t *testing.T) {
	t.Chdir(t.TempDir()) // the path of a socket must be short
	if err := os.WriteFile("file", []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for name, make := range map[string]func() error{
		"a named pipe":    func() error { return syscall.Mkfifo("a named pipe", 0o600) },
		"a folder":        func() error { return os.Mkdir("a folder", 0o700) },
		"a symbolic link": func() error { return os.Symlink("file", "a symbolic link") },
		"a socket":        func() error { return os.Rename("socket", "a socket") },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		for _, flag := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_CREATE | os.O_APPEND} {
			_, err := Policy{Any: true}.Open(name, flag, 0o600)
			if !errors.Is(err, ErrNotRegular) || !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "it is "+name) {
				t.Errorf("open %s with flag %#x: %v, want ErrNotRegular", name, flag, err)
			}
		}
	}
	if _, err := (Policy{Any: true}).Read(os.DevNull, 1); !errors.Is(err, ErrNotRegular) {
		t.Errorf("read a device: %v, want ErrNotRegular", err)
	}
	if _, err := (Policy{}).Read("none", 1); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrUnsafe) {
		t.Errorf("read a file that is not there: %v, want ErrNotExist", err)
	}
}

func TestReadEndsAtTheLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sparse")
	if err := errors.Join(os.WriteFile(path, []byte("content"), 0o600), os.Truncate(path, 1<<40)); err != nil {
		t.Skipf("no sparse file of a terabyte here: %v", err)
	}
	if b, err := (Policy{}).Read(path, 7); string(b) != "content" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
}

func TestModes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, safe := range map[fs.FileMode]bool{0o600: true, 0o644: true, 0o400: true, 0o620: false, 0o602: false, 0o666: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := Policy{}.Read(path, 1)
		if e := (*Error)(nil); safe != (err == nil) || !safe && (!errors.As(err, &e) || !errors.Is(err, ErrUnsafe) || e.Folder != filepath.Dir(path)) {
			t.Errorf("mode %04o: %v", mode, err)
		}
		if _, err := (Policy{Any: true}).Read(path, 1); err != nil {
			t.Errorf("mode %04o, any file accepted: %v", mode, err)
		}
	}
}

// TestOwners asks as any user about a file of this one: root is nobody special.
func TestOwners(t *testing.T) {
	info, err := os.Stat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	uid, known := Owner(info)
	if !known || uid != os.Geteuid() {
		t.Fatalf("owner %d, %t; want %d", uid, known, os.Geteuid())
	}
	for _, c := range []struct {
		policy Policy
		user   int
		safe   bool
	}{
		{Policy{}, uid, true},
		{Policy{}, uid + 1, false},
		{Policy{Owner: uid + 7}, uid + 1, false},
		{Policy{Any: true}, uid + 1, true},
	} {
		if err := c.policy.check("folder", info, c.user); (err == nil) != c.safe {
			t.Errorf("%+v, opened by user %d: %v", c.policy, c.user, err)
		}
	}
	other := foreign{info}
	for _, c := range []struct {
		policy Policy
		user   int
		safe   bool
	}{
		{Policy{}, 0, false}, // root
		{Policy{Owner: foreignUID}, 0, true},
		{Policy{Owner: foreignUID + 1}, 0, false},
	} {
		if err := c.policy.check("folder", other, c.user); (err == nil) != c.safe {
			t.Errorf("%+v, a folder of user %d opened by user %d: %v", c.policy, foreignUID, c.user, err)
		}
	}
}

const foreignUID = 1002

// foreign describes a folder of another user.
type foreign struct{ fs.FileInfo }

func (foreign) Sys() any { return &syscall.Stat_t{Uid: foreignUID} }
