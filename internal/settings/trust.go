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

// Safety says whether a file that the user did not write may set something, such as
// the file in the folder of a store that was cloned. A name that is no setting, and
// another name for one, are not safe.
type Safety uint8

// The kinds of settings, by what harm they can do.
const (
	Unsafe   Safety = iota // it names a program, a host or a credential, adds to requests, or has things deleted
	Safe                   // it does nothing of that kind
	Stricter               // safe where it is stricter than what the user says
)

// strictness is the values of a Stricter setting, the strictest last.
var strictness = words("off traces all")

func stricter(value, than string) bool {
	return slices.Index(strictness, value) > slices.Index(strictness, than)
}

// SafeAs reports whether a file that the user did not write may set this value, whatever
// the user says.
func (k Key) SafeAs(value string) bool {
	return k.Safety == Safe || k.Safety == Stricter && value == strictness[len(strictness)-1]
}

// safetyOf is the safety of a name as a file has it.
func safetyOf(name string) Safety {
	key, known := lookup(name)
	if !known || isSynonym(name) {
		return Unsafe
	}
	return key.Safety
}

// Trust remembers which files and folders the user accepted as they were, each in a
// small file of its own, outside of them. The zero Trust knows of none.
type Trust struct{ dir string }

// TrustBeside is the memory in the folder trusted, beside the file of the user's
// settings. It is the zero Trust when there is no such file.
func TrustBeside(global string) Trust {
	if global == "" {
		return Trust{}
	}
	return Trust{filepath.Join(filepath.Dir(global), "trusted")}
}

// ErrNoHome says that there is no place to remember anything in.
var ErrNoHome = errors.New("there is no home folder to remember it in")

// Has reports whether the user accepted what is at a path with this content.
func (t Trust) Has(path string, content []byte) bool {
	if t.dir == "" {
		return false
	}
	name, line := t.entry(path, content)
	have, err := os.ReadFile(name)
	return err == nil && string(have) == line
}

// Add remembers the content of what is at a path, in the place of what it was before.
func (t Trust) Add(path string, content []byte) error {
	if t.dir == "" {
		return fmt.Errorf("trust %s: %w", path, ErrNoHome)
	}
	name, line := t.entry(path, content)
	_, err := File{Path: name}.change(func([]byte) ([]byte, error) { return []byte(line), nil })
	return err
}

// Remove forgets what is at a path and reports whether it was remembered.
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

// entry is the file that remembers a path, and what it says: a line as sha256sum
// prints it.
func (t Trust) entry(path string, content []byte) (name, line string) {
	path = Resolve(path)
	of, sum := sha256.Sum256([]byte(path)), sha256.Sum256(content)
	return filepath.Join(t.dir, hex.EncodeToString(of[:])), hex.EncodeToString(sum[:]) + "  " + path + "\n"
}

// Resolve is the absolute path of a file or a folder, without symbolic links. Where
// nothing is at the path yet, those in its last part stay.
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
