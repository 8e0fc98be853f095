package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Safety says whether a file that the user did not write, such as the one in the folder of
// a cloned store, may set something. An unknown name is not safe.
type Safety uint8

// The kinds of settings, by what harm they can do.
const (
	Unsafe   Safety = iota // it names a program, a host or a credential, adds to requests, or has things deleted
	Safe                   // it does nothing of that kind
	Stricter               // safe where it is stricter than what the user says
)

// strictness has the values of a Stricter setting, the strictest last.
var strictness = words("off traces all")

func stricter(value, than string) bool {
	return slices.Index(strictness, value) > slices.Index(strictness, than)
}

// SafeAs reports whether a file that the user did not write may set this value, whatever
// the user's own value is.
func (k Key) SafeAs(value string) bool {
	return k.Safety == Safe || k.Safety == Stricter && value == strictness[len(strictness)-1]
}

// Trust remembers which files and folders the user accepted as they are, each in a small
// file of its own, outside of them. The zero Trust remembers nothing.
type Trust struct{ dir string }

// TrustBeside returns the Trust in the folder trusted beside the user's file of settings;
// the zero Trust when there is no such file.
func TrustBeside(global string) Trust {
	if global == "" {
		return Trust{}
	}
	return Trust{filepath.Join(filepath.Dir(global), "trusted")}
}

// ErrNoHome is the error when there is no place to remember anything in.
var ErrNoHome = errors.New("there is no home folder to remember it in")

// Has reports whether the user accepted the content of a path.
func (t Trust) Has(path string, content []byte) bool {
	if t.dir == "" {
		return false
	}
	name, line := t.entry(path, content)
	have, err := os.ReadFile(name)
	return err == nil && string(have) == line
}

// Add remembers the content of a path, instead of what it was before.
func (t Trust) Add(path string, content []byte) error {
	if t.dir == "" {
		return fmt.Errorf("trust %s: %w", path, ErrNoHome)
	}
	name, line := t.entry(path, content)
	_, err := File{Path: name}.change(func([]byte) ([]byte, error) { return []byte(line), nil })
	return err
}

// Remove forgets a path and reports whether it was remembered.
func (t Trust) Remove(path string) (bool, error) {
	if t.dir == "" {
		return false, nil
	}
	name, _ := t.entry(path, nil)
	err := os.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// entry returns the file that remembers a path, and its text: a line as sha256sum prints
// it.
func (t Trust) entry(path string, content []byte) (name, line string) {
	path = Resolve(path)
	of, sum := sha256.Sum256([]byte(path)), sha256.Sum256(content)
	return filepath.Join(t.dir, hex.EncodeToString(of[:])), hex.EncodeToString(sum[:]) + "  " + path + "\n"
}

// Resolve returns the absolute path of a file or a folder, without symbolic links. When
// nothing is at the path yet, links in its last part stay.
func Resolve(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}
