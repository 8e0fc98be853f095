package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/safefile"
)

// The most that a file of settings may hold. The parser takes time that grows with the
// square of the number of keys, so there is a bound for that too.
const (
	maxFile  = 1 << 20 // bytes
	maxKeys  = 4000    // keys and heads of tables: the user's own file has some for each store
	maxDepth = 32      // parts of a key, with those of the tables it is in
)

// storeTable is the table of the user's file that has a section for each store, under
// the path of its folder.
const storeTable = "store"

// File is a file of settings, or the part of it that is about one store.
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

// Contents is what a file sets.
type Contents struct {
	Trusted bool              // it is the user's own, or the user accepted it as it is
	Set     map[string]string // what counts, by canonical name
	Ignored []Item            // what does not, because the file is not trusted

	text []byte
}

// Read reads the file. A missing file is an fs.ErrNotExist; any other error names the
// file and the line. Of a file in a folder, a setting that is Stricter is in Set, and
// whoever uses it compares.
func (f File) Read() (*Contents, error) {
	text, err := f.text()
	if err != nil {
		return nil, err
	}
	c, err := f.parse(text, f.trusts(text))
	if err != nil {
		return nil, err
	}
	for i := range c.Ignored {
		c.Ignored[i].Origin = Origin{Repo, f.Path}
	}
	return c, nil
}

func (f File) parse(text []byte, trusted bool) (*Contents, error) {
	c, line, err := parse(text, f.section(), trusted)
	switch {
	case err != nil && line > 0:
		return nil, fmt.Errorf("config %s line %d: %w", f.Path, line, err)
	case err != nil:
		return nil, fmt.Errorf("config %s: %w", f.Path, err)
	}
	return c, nil
}

// Acceptable checks that everything in the file can count: mistakes in what is ignored
// are errors in a file that is trusted.
func (f File) Acceptable(c *Contents) error {
	_, err := f.parse(c.text, true)
	return err
}

// Accept has the user trust the file with the bytes that were read, which have to be
// Acceptable.
func (f File) Accept(c *Contents) error {
	if err := f.Acceptable(c); err != nil {
		return err
	}
	return f.Trust.Add(f.Path, c.text)
}

func (f File) trusts(text []byte) bool { return !f.Folder || f.Trust.Has(f.Path, text) }

// Unsafe lists what counts only when the file is trusted.
func (c *Contents) Unsafe() []Item {
	list := slices.Clone(c.Ignored)
	for _, name := range slices.Sorted(maps.Keys(c.Set)) {
		if key, _ := lookup(name); !key.SafeAs(c.Set[name]) {
			list = append(list, Item{Key: key, Value: c.Set[name]})
		}
	}
	return list
}

// text is the bytes of the file. The user's own may be a link into a collection of
// such files.
func (f File) text() ([]byte, error) {
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

// section is the path of the table that the settings of the file are in.
func (f File) section() []string {
	if f.Store == "" {
		return nil
	}
	return []string{storeTable, f.Store}
}

// parse reads the settings in a section of a document. The line is that of the error,
// where it is known.
func parse(text []byte, section []string, trusted bool) (c *Contents, at int, err error) {
	doc, lines, err := document(text)
	if err != nil {
		return nil, lineOfError(err), err
	}
	c = &Contents{Trusted: trusted, Set: map[string]string{}, text: text}
	for _, l := range leaves(doc) {
		ours := slices.Equal(l.section, section)
		switch {
		case !trusted && (!ours || safetyOf(l.name()) == Unsafe):
			c.Ignored = append(c.Ignored, l.item())
		case ours:
			if err := l.into(c.Set); err != nil {
				return nil, lineOf(text, lines, l), err
			}
		}
	}
	return c, 0, nil
}

// document reads a text whose size is bounded.
func document(text []byte) (map[string]any, []line, error) {
	lines, err := scan(text)
	if err != nil && errors.As(err, new(*limitError)) {
		return nil, nil, err
	}
	var doc map[string]any
	if err := toml.Unmarshal(text, &doc); err != nil {
		return nil, nil, err
	}
	return doc, lines, err
}

func lineOfError(err error) int {
	if e := (*limitError)(nil); errors.As(err, &e) {
		return e.line
	}
	if e := (*toml.DecodeError)(nil); errors.As(err, &e) {
		line, _ := e.Position()
		return line
	}
	return 0
}

// leaf is one value of a document: a table only where it is the value of a setting.
type leaf struct {
	section []string // of a store; nil: it is in none
	path    []string // there
	value   any
}

// leaves lists the values of a document, by name.
func leaves(doc map[string]any) []leaf {
	var list []leaf
	var walk func(table map[string]any, section, path []string)
	walk = func(table map[string]any, section, path []string) {
		for name, value := range table {
			l := leaf{section, append(path[:len(path):len(path)], name), value}
			sub, isTable := value.(map[string]any)
			key, known := lookup(l.name())
			switch {
			case !isTable || known && key.Type == JSON:
				list = append(list, l)
			case section == nil && len(l.path) == 2 && path[0] == storeTable:
				walk(sub, l.path, nil)
			default:
				walk(sub, section, l.path)
			}
		}
	}
	walk(doc, nil, nil)
	slices.SortFunc(list, func(a, b leaf) int {
		return cmp.Or(slices.Compare(a.section, b.section), slices.Compare(a.path, b.path))
	})
	return list
}

// name is the name of the setting.
func (l leaf) name() string { return strings.Join(l.path, ".") }

// item is a setting that does not count, as the file has it, without secrets.
func (l leaf) item() Item {
	i := Item{Key: Key{Name: shorten(l.name())}}
	if key, known := lookup(l.name()); known && !isSynonym(l.name()) {
		i.Key = key
	}
	if !secretName(l.name()) {
		text, _ := written(l.value)
		i.Value = secrets.Mask(text)
	}
	return i
}

func (l leaf) into(set map[string]string) error {
	key, err := Find(l.name())
	if err != nil {
		return err
	}
	if _, twice := set[key.Name]; twice {
		return fmt.Errorf("setting %s: set twice, under different spellings", key.Name)
	}
	text, ok := written(l.value)
	if !ok {
		return &ValueError{Key: key.Name, Value: shorten(fmt.Sprint(l.value)), Want: key.Want()}
	}
	if text == "" && key.Type == Text {
		return nil // an empty text is how a file says none
	}
	set[key.Name], err = key.Parse(text)
	return err
}

// written is a TOML value as a person would type it.
func written(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case map[string]any:
		b, err := json.Marshal(v)
		return string(b), err == nil
	}
	return "", false
}

// literal is a canonical value as TOML.
func (k Key) literal(value string) any {
	switch k.Type {
	case Bool:
		return value == "true"
	case Number:
		n, _ := strconv.ParseInt(value, 10, 64)
		return n
	case Fraction:
		f, _ := strconv.ParseFloat(value, 64)
		return f
	}
	return value
}

// Set sets one value, in a file that is made when it is missing, and returns the
// canonical value. What else is in the file stays, comments included. The file is
// replaced whole, and only its owner can read it.
func (f File) Set(name, value string) (string, error) {
	key, err := Find(name)
	if err != nil {
		return "", err
	}
	if value, err = key.Parse(value); err != nil {
		return "", err
	}
	_, err = f.edit(edit{name: key.Name, key: key, value: value, set: true})
	if err != nil {
		return "", fmt.Errorf("set %s: %w", key.Name, err)
	}
	return value, nil
}

// Unset takes one setting out of the file and reports whether it was there. The name
// may be one that is not a setting, so that a mistake can be taken out.
func (f File) Unset(name string) (bool, error) {
	if key, err := Find(name); err == nil {
		name = key.Name
	}
	changed, err := f.edit(edit{name: name})
	if err != nil {
		return false, fmt.Errorf("unset %s: %w", name, err)
	}
	return changed, nil
}

func (f File) edit(edits ...edit) (bool, error) {
	return f.change(func(text []byte) ([]byte, error) { return apply(text, f.section(), edits) })
}

// change replaces the text of the file, unless edit leaves it as it is. When somebody
// else changed the file meanwhile it begins again. A file that the user trusts is
// trusted as it is after the change.
func (f File) change(edit func(text []byte) ([]byte, error)) (bool, error) {
	const tries = 8
	for range tries {
		before, err := f.text()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		after, err := edit(before)
		if err != nil {
			return false, err
		}
		if bytes.Equal(after, before) {
			return false, nil
		}
		done, err := f.replace(before, after)
		if done && f.Folder && f.Trust.Has(f.Path, before) {
			err = f.Trust.Add(f.Path, after)
		}
		if done || err != nil {
			return done, err
		}
	}
	return false, fmt.Errorf("config %s: others change it all the time", f.Path)
}

// errChanged says that a file does not read as it did.
var errChanged = errors.New("the file has changed")

// replace puts a file in the place of this one, if that still reads before. A link to
// the user's own file stays one.
func (f File) replace(before, after []byte) (done bool, err error) {
	path := f.Path
	if !f.Folder {
		path = Resolve(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, fmt.Errorf("write config: %w", err)
	}
	err = safefile.Write(path, after, func() error {
		now, err := f.text()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
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
