package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/tract-vcs/tract/safefile"
)

// File is a settings file, or the section for one store in it.
type File struct {
	Path  string
	Store string // the resolved path of a store's folder: only its section counts; empty: all but the sections

	// Folder is for a file in a store's folder, which somebody else may have made:
	// it is no link, and what it sets that is not Safe counts only when Trust has
	// the file as it is.
	Folder bool
	Files  safefile.Policy // of the folder
	Trust  Trust
}

// Contents are the settings in a file.
type Contents struct {
	Trusted bool              // it is the user's own, or the user accepted it as it is
	Set     map[string]string // what counts, by canonical name
	Ignored []Item            // what does not, because the file is not trusted

	text []byte
}

// Read reads the file. If it does not exist, the error is an fs.ErrNotExist; any other error names
// the file and the line. A setting with [Stricter] safety is in Set even if the file is not
// trusted: the caller compares it with the user's value.
func (f File) Read() (*Contents, error) {
	text, err := f.readText()
	if err != nil {
		return nil, err
	}
	c, err := f.parseText(text, f.isTrusted(text))
	if err != nil {
		return nil, err
	}
	for i := range c.Ignored {
		c.Ignored[i].Origin = Origin{Repo, f.Path}
	}
	return c, nil
}

func (f File) parseText(text []byte, trusted bool) (*Contents, error) {
	c, err := parseSettings(text, f.storeSection(), trusted)
	if err != nil {
		return nil, fmt.Errorf("config %s: %w", f.Path, err)
	}
	return c, nil
}

// Accept trusts the file with the bytes that were read, unless dry is set. It returns an error if
// the file would be invalid as a trusted file: mistakes in ignored settings are errors then.
func (f File) Accept(c *Contents, dry bool) error {
	if _, err := f.parseText(c.text, true); err != nil || dry {
		return err
	}
	return f.Trust.Add(f.Path, c.text)
}

// isTrusted reports whether all settings in the file are applied.
func (f File) isTrusted(text []byte) bool { return !f.Folder || f.Trust.Has(f.Path, text) }

// Unsafe returns the settings that are applied only while the file is trusted.
func (c *Contents) Unsafe() []Item {
	list := slices.Clone(c.Ignored)
	for _, name := range slices.Sorted(maps.Keys(c.Set)) {
		if key, _ := lookup(name); !key.SafeAs(c.Set[name]) {
			list = append(list, Item{Key: key, Value: c.Set[name]})
		}
	}
	return list
}

// readText reads the file. If it does not exist, the error is an fs.ErrNotExist. The user's own
// file may be a symbolic link.
func (f File) readText() ([]byte, error) {
	open := func() (*os.File, error) { return f.Files.Open(f.Path, os.O_RDONLY, 0) }
	if !f.Folder {
		open = func() (*os.File, error) { return os.Open(f.Path) }
	}
	file, err := open()
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("config %s: more than %d bytes", f.Path, maxFile)
	}
	return text, nil
}

// readTextIfExists is readText, but without an error if the file does not exist.
func (f File) readTextIfExists() ([]byte, error) {
	text, err := f.readText()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// storeSection returns the path of the table that has the settings of Store; nil, the top level, if
// Store is empty.
func (f File) storeSection() []string {
	if f.Store == "" {
		return nil
	}
	return []string{storeTable, f.Store}
}

// parseSettings returns the settings in a section of a document. The error names the line if it is
// known.
func parseSettings(text []byte, section []string, trusted bool) (*Contents, error) {
	list, err := decodeSortedValues(text)
	if err != nil {
		return nil, errorAtLine(lineOfError(err), err)
	}
	c := &Contents{Trusted: trusted, Set: map[string]string{}, text: text}
	for _, l := range list {
		ours := slices.Equal(l.section, section)
		key, _ := lookup(l.name()) // an unknown name is not safe
		switch {
		case !trusted && (!ours || key.Safety == Unsafe):
			c.Ignored = append(c.Ignored, l.maskedItem())
		case ours:
			if err := l.addTo(c.Set); err != nil {
				return nil, errorAtLine(lineOf(text, l), err)
			}
		}
	}
	return c, nil
}

// errorAtLine adds a line number to an error. line 0 means unknown.
func errorAtLine(line int, err error) error {
	if line == 0 {
		return err
	}
	return fmt.Errorf("line %d: %w", line, err)
}

// Set sets one value and returns its canonical form. The file is made when it is missing.
// Everything else in it stays, comments included. The file is replaced atomically, and only
// its owner can read it.
func (f File) Set(name, value string) (string, error) {
	e, err := newSetEdit(name, value)
	if err != nil {
		return "", err
	}
	if _, err := f.editFile(e); err != nil {
		return "", fmt.Errorf("set %s: %w", e.name, err)
	}
	return e.value, nil
}

// Unset removes one setting from the file and reports whether it was there. The name need
// not be that of a setting, so that a mistake can be removed.
func (f File) Unset(name string) (bool, error) {
	if key, err := Find(name); err == nil {
		name = key.Name
	}
	changed, err := f.editFile(edit{name: name})
	if err != nil {
		return false, fmt.Errorf("unset %s: %w", name, err)
	}
	return changed, nil
}

// editFile applies edits to the file, and reports whether they changed it.
func (f File) editFile(edits ...edit) (changed bool, err error) {
	return f.updateText(func(text []byte) ([]byte, error) { return applyEdits(text, f.storeSection(), edits) })
}

// updateText replaces the text of the file with the result of edit, unless that is unchanged. It
// tries again if another program changed the file meanwhile. A trusted file stays trusted.
func (f File) updateText(edit func(text []byte) ([]byte, error)) (changed bool, err error) {
	const tries = 8
	for range tries {
		before, err := f.readTextIfExists()
		if err != nil {
			return false, err
		}
		after, err := edit(before)
		if err != nil {
			return false, err
		}
		if bytes.Equal(after, before) {
			return false, nil
		}
		done, err := f.replaceIfUnchanged(before, after)
		if done && f.Folder && f.Trust.Has(f.Path, before) {
			err = f.Trust.Add(f.Path, after)
		}
		if done || err != nil {
			return done, err
		}
	}
	return false, fmt.Errorf("config %s: other programs changed it during each of %d attempts", f.Path, tries)
}

// errChanged reports that another program changed the file meanwhile.
var errChanged = errors.New("the file has changed")

// replaceIfUnchanged replaces the file atomically, if its text is still before. The user's own file
// stays a symbolic link.
func (f File) replaceIfUnchanged(before, after []byte) (done bool, err error) {
	path := f.Path
	if !f.Folder {
		path = Resolve(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, fmt.Errorf("write config: %w", err)
	}
	err = safefile.Write(path, after, func() error {
		now, err := f.readTextIfExists()
		if err != nil {
			return err
		}
		if !bytes.Equal(now, before) {
			return errChanged
		}
		return nil
	})
	if errors.Is(err, errChanged) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write config: %w", err)
	}
	return true, nil
}
