//go:build !windows

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// result is what a command did.
type result struct {
	code     int
	out, err string
}

// tractIn runs a command line in a folder whose home is beside it.
func tractIn(t *testing.T, dir string, env []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tract", args...)
	var out, errOut bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errOut
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(dir, "home"), "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "TRACT_DIR=", "SUDO_UID=", "USER=ada")
	cmd.Env = append(cmd.Env, env...)
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("tract %s hangs", strings.Join(args, " "))
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

func mustTract(t *testing.T, dir string, args ...string) {
	t.Helper()
	if r := tractIn(t, dir, nil, args...); r.code != 0 {
		t.Fatalf("tract %s: exit code %d: %s", strings.Join(args, " "), r.code, r.err)
	}
}

// folderCommands is commands that look at a store in every way there is, and change it.
var folderCommands = [][]string{
	{"log"},
	{"status"},
	{"compile"},
	{"user", "Hello again"},
	{"fsck"},
	{"doctor"},
	{"gc", "--prune"},
	{"backup", "copy"},
	{"recover", ".tract", "saved"},
	{"config", "list"},
	{"config", "set", "model", "m"},
	{"config", "unset", "model"},
	{"config", "trust"},
	{"profile", "list"},
	{"profile", "save", "p"},
	{"profile", "load", "p"},
	{"profile", "delete", "p"},
	{"init"},
	{"bisect", "log"},
	{"bisect", "start", "HEAD", "HEAD"},
	{"reasoning", "list"},
	{"__complete", "log", ""},
	{"__complete", "profile", "load", ""},
}

// TestFolderOfAnotherUserIsRefused gives a store to another user, which only root can do. Then every
// user, root included, is refused before anything of the store is read.
func TestFolderOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away; TestOwners of package safefile shows the rule to all")
	}
	dir := t.TempDir()
	mustTract(t, dir, "init")
	mustTract(t, dir, "user", "Hello")
	if err := os.WriteFile(filepath.Join(dir, ".tract", "config.toml"), []byte("not toml, and never read"), 0o600); err != nil {
		t.Fatal(err)
	}
	const nobody = 65534
	root := filepath.Join(dir, ".tract")
	if err := os.Chown(root, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	for _, args := range folderCommands {
		r := tractIn(t, dir, nil, args...)
		if args[0] == "__complete" {
			continue // which offers nothing
		}
		if args[0] == "doctor" && strings.Contains(r.out, "belongs to user 65534") && r.code == 1 {
			continue // it lists what is wrong
		}
		if r.code != 1 || !strings.Contains(r.err, "belongs to user 65534") || !strings.Contains(r.err, "tract config trust --folder "+root) || strings.Contains(r.err, "toml") {
			t.Errorf("tract %s: exit code %d: %s", strings.Join(args, " "), r.code, r.err)
		}
	}
	if err := os.Remove(filepath.Join(root, "config.toml")); err != nil {
		t.Fatal(err)
	}
	if r := tractIn(t, dir, []string{"SUDO_UID=65533"}, "log"); r.code != 1 {
		t.Errorf("another user became root: exit code %d", r.code)
	}
	if r := tractIn(t, dir, []string{"SUDO_UID=65534"}, "log"); r.code != 0 {
		t.Errorf("the owner became root: exit code %d: %s", r.code, r.err)
	}
	if r := tractIn(t, dir, nil, "config", "trust", "--folder", dir); r.code != 0 || !strings.Contains(r.out, "belongs to user 65534") {
		t.Fatalf("trust: exit code %d: %s%s", r.code, r.out, r.err)
	}
	for _, args := range [][]string{{"log"}, {"fsck"}, {"user", "Hello again"}, {"backup", "copy"}, {"recover", ".tract", "saved"}, {"config", "set", "model", "m"}} {
		mustTract(t, dir, args...)
	}
	if err := os.Chown(root, nobody-1, nobody); err != nil {
		t.Fatal(err)
	}
	if r := tractIn(t, dir, nil, "log"); r.code != 1 {
		t.Errorf("the folder was accepted from another owner: exit code %d", r.code)
	}
	if err := os.Chown(root, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	mustTract(t, dir, "log")
	mustTract(t, dir, "config", "trust", "--folder", root, "--revoke")
	if r := tractIn(t, dir, nil, "log"); r.code != 1 {
		t.Errorf("after it was revoked: exit code %d", r.code)
	}
	link := filepath.Join(dir, "linked", ".tract")
	if err := errors.Join(os.Chown(root, 0, 0), os.Mkdir(filepath.Dir(link), 0o700), os.Symlink(root, link)); err != nil {
		t.Fatal(err)
	}
	mustTract(t, filepath.Dir(link), "log")
	if err := os.Lchown(link, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if r := tractIn(t, filepath.Dir(link), nil, "log"); r.code != 1 || !strings.Contains(r.err, "belongs to user") {
		t.Errorf("a link of somebody else: exit code %d: %s", r.code, r.err)
	}
}

// TestWritableByOthersIsRefused holds for the folder, and for each file that is read
// there.
func TestWritableByOthersIsRefused(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		".": {"log"}, "config.toml": {"log"}, "HEAD": {"log"}, "tract.db": {"log"}, "tract.db-journal": {"log"}, "tract.db-lock": {"user", "x"}, "tract.db-turn": {"user", "x"},
		"profiles": {"profile", "load", "p"}, "profiles/p.toml": {"profile", "load", "p"}, "BISECT": {"bisect", "log"},
	} {
		dir := t.TempDir()
		for _, args := range [][]string{{"init"}, {"user", "Hello"}, {"user", "Hello again"}, {"config", "set", "model", "m"}, {"profile", "save", "p"}, {"bisect", "start", "HEAD", "HEAD~1"}} {
			mustTract(t, dir, args...)
		}
		root := filepath.Join(dir, ".tract")
		path := filepath.Join(root, name)
		info, err := os.Stat(path)
		if err == nil {
			err = os.Chmod(path, info.Mode()|0o022)
		}
		if err != nil {
			t.Fatal(err)
		}
		r := tractIn(t, dir, nil, args...)
		if r.code != 1 || !strings.Contains(r.err, "others can write it") || !strings.Contains(r.err, "tract config trust --folder "+root) {
			t.Errorf("%s with mode %v: exit code %d: %s", name, info.Mode()|0o022, r.code, r.err)
		}
		mustTract(t, dir, "config", "trust", "--folder", root)
		mustTract(t, dir, args...)
	}
}

// TestSpecialFilesInStoreFolder puts what is not a regular file in the place of each file of
// a store's folder. Every command ends, none reads what a link leads to or writes
// through it, and what cannot be done is said in one line. Each place and kind runs a third of
// folderCommands, each time other ones, and with TRACT_TORTURE=1 all.
func TestSpecialFilesInStoreFolder(t *testing.T) {
	base := t.TempDir()
	mustTract(t, base, "init")
	mustTract(t, base, "user", "Hello")
	mustTract(t, base, "config", "set", "--global", "model", "m")
	kinds := map[string]func(path string) error{
		"named pipe":    func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"folder":        func(p string) error { return os.Mkdir(p, 0o700) },
		"endless link":  func(p string) error { return os.Symlink("/dev/zero", p) },
		"link out":      func(p string) error { return os.Symlink("../secret", p) },
		"sparse file":   func(p string) error { return errors.Join(os.WriteFile(p, []byte("x"), 0o600), os.Truncate(p, 1<<40)) },
		"link to a dir": func(p string) error { return os.Symlink("../home", p) },
	}
	if os.Geteuid() == 0 {
		kinds["device"] = func(p string) error { return syscall.Mknod(p, syscall.S_IFCHR|0o600, 1<<8|5) } // /dev/zero
	}
	names := []string{"tract.db", "tract.db-journal", "tract.db-lock", "tract.db-turn", "HEAD", "config.toml", ".gitignore", "BISECT", "profiles", "profiles/p.toml"}
	every := faultRounds(3, 3, 1)
	for i, name := range names {
		for j, kind := range slices.Sorted(maps.Keys(kinds)) {
			put, first := kinds[kind], (i+j)%every
			if name == "tract.db" && kind == "sparse file" {
				continue // tract recover reads all of it
			}
			t.Run(name+" as "+kind, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "work")
				restore(t, base, dir)
				path := filepath.Join(dir, ".tract", name)
				const secret = "the secret that nobody is to see"
				err := errors.Join(os.WriteFile(filepath.Join(dir, "secret"), []byte(secret), 0o600), os.RemoveAll(path), os.MkdirAll(filepath.Dir(path), 0o700))
				if err == nil {
					err = put(path)
				}
				if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EFBIG) {
					t.Skipf("it cannot be made here: %v", err)
				}
				if err != nil {
					t.Fatal(err)
				}
				for i := first; i < len(folderCommands); i += every {
					checkSpecial(t, dir, secret, folderCommands[i])
				}
			})
		}
	}
}

func checkSpecial(t *testing.T, dir, secret string, args []string) {
	t.Helper()
	what := fmt.Sprintf("tract %s", strings.Join(args, " "))
	r := tractIn(t, dir, nil, args...)
	lines := strings.Count(r.err, "\n")
	if strings.Contains(r.err, "goroutine ") || strings.Contains(r.out+r.err, secret) || len(r.err) > 20_000 {
		t.Errorf("%s: %.500s%.500s", what, r.out, r.err)
	}
	if r.code != 0 && r.code != codeNo && strings.Count(r.err, "tract: error: ") != 1 || lines > 12 {
		t.Errorf("%s: exit code %d: %.500s", what, r.code, r.err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "secret")); err != nil || string(b) != secret {
		t.Errorf("%s: it wrote through the link: %q, %v", what, b, err)
	}
	for _, copied := range []string{"copy", "saved"} {
		for _, name := range headAndSettingsFiles {
			if b, _ := os.ReadFile(filepath.Join(dir, copied, name)); strings.Contains(string(b), secret) {
				t.Errorf("%s: the secret is in %s/%s", what, copied, name)
			}
		}
		if err := os.RemoveAll(filepath.Join(dir, copied)); err != nil {
			t.Error(err)
		}
	}
}
