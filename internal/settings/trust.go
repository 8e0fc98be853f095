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
	"strings"
)

// Safety is whether a file that the user did not write, such as the file in the folder of a cloned
// store, may set a setting. An unknown name is unsafe.
type Safety uint8

// The levels of safety.
const (
	Unsafe   Safety = iota // the setting names a program, a host or a credential, adds to requests, or deletes data
	Safe                   // the setting does none of these
	Stricter               // the value is safe if it is stricter than the user's value
)

// maskingByStrictness has the values of the Stricter setting, the strictest last.
var maskingByStrictness = strings.Fields("off traces all")

// isStricterMasking reports whether a value of the Stricter setting masks more than another.
func isStricterMasking(value, than string) bool {
	return slices.Index(maskingByStrictness, value) > slices.Index(maskingByStrictness, than)
}

// SafeAs reports whether a file that the user did not write may set this value, whatever
// the user's own value is.
func (k Key) SafeAs(value string) bool {
	return k.Safety == Safe || k.Safety == Stricter && value == maskingByStrictness[len(maskingByStrictness)-1]
}

// Trust records which files and folders the user accepted as they are. Each record is a small file
// in a folder beside the user's settings. The zero Trust records nothing.
type Trust struct{ dir string }

// TrustBeside returns the Trust in the folder trusted beside the user's file of settings;
// the zero Trust when there is no such file.
func TrustBeside(global string) Trust {
	if global == "" {
		return Trust{}
	}
	return Trust{filepath.Join(filepath.Dir(global), "trusted")}
}

// ErrNoHome is the error if there is no folder in which to record trust.
var ErrNoHome = errors.New("there is no home folder to remember it in")

// Has reports whether the user accepted the content of a path.
func (t Trust) Has(path string, content []byte) bool {
	if t.dir == "" {
		return false
	}
	name, line := t.fileAndLine(path, content)
	have, err := os.ReadFile(name)
	return err == nil && string(have) == line
}

// Add records the accepted content of a path, in place of an earlier record.
func (t Trust) Add(path string, content []byte) error {
	if t.dir == "" {
		return fmt.Errorf("trust %s: %w", path, ErrNoHome)
	}
	name, line := t.fileAndLine(path, content)
	_, err := File{Path: name}.updateText(func([]byte) ([]byte, error) { return []byte(line), nil })
	return err
}

// Remove removes the record of a path, and reports whether it existed.
func (t Trust) Remove(path string) (bool, error) {
	if t.dir == "" {
		return false, nil
	}
	name, _ := t.fileAndLine(path, nil)
	err := os.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// fileAndLine returns the file that records a path, and its text: a line in the format of
// sha256sum.
func (t Trust) fileAndLine(path string, content []byte) (name, line string) {
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
