//go:build !windows

package tract_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// TestAnIndexThatIsNoRegularFile puts something else in the place of the index of
// thoughts: it counts as none, and nothing waits for it.
func TestAnIndexThatIsNoRegularFile(t *testing.T) {
	h := newThinker(t)
	h.turns("b1", 1100)
	for name, make := range map[string]func() error{
		"a named pipe":             func() error { return syscall.Mkfifo(h.index, 0o600) },
		"a folder":                 func() error { return os.Mkdir(h.index, 0o700) },
		"a link that never ends":   func() error { return os.Symlink("/dev/zero", h.index) },
		"a sparse file":            func() error { return errors.Join(os.WriteFile(h.index, nil, 0o600), os.Truncate(h.index, 1<<40)) },
		"a file that others write": func() error { return errors.Join(os.WriteFile(h.index, nil, 0o600), os.Chmod(h.index, 0o666)) },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		h.same("the index is " + name)
		if err := os.Remove(h.index); err != nil {
			t.Fatal(err)
		}
	}
}
