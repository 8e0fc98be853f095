package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// maxFile is the most bytes that a file of settings may have.
const maxFile = 1 << 20

// Read gives what a file of settings sets, by canonical name. A missing file is
// an fs.ErrNotExist; any other error names the file and the line.
func Read(path string) (map[string]string, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	set, line, err := parseFile(text)
	switch {
	case err != nil && line > 0:
		return nil, fmt.Errorf("config %s line %d: %w", path, line, err)
	case err != nil:
		return nil, fmt.Errorf("config %s: %w", path, err)
	}
	return set, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("config %s: more than %d bytes", path, maxFile)
	}
	return text, nil
}

// parseFile reads settings out of TOML. The line is that of the error, where it
// is known.
func parseFile(text []byte) (set map[string]string, line int, err error) {
	var doc map[string]any
	if err := toml.Unmarshal(text, &doc); err != nil {
		if bad := (*toml.DecodeError)(nil); errors.As(err, &bad) {
			line, _ = bad.Position()
		}
		return nil, line, err
	}
	set = map[string]string{}
	for _, leaf := range leaves(doc) {
		if err := leaf.into(set); err != nil {
			return nil, lineOf(text, leaf.path), err
		}
	}
	return set, 0, nil
}

// leaf is one value of a document: a table only where it is the value of a
// setting.
type leaf struct {
	path  []string
	value any
}

// leaves lists the values of a document, by name.
func leaves(doc map[string]any) []leaf {
	var list []leaf
	var walk func(table map[string]any, path []string)
	walk = func(table map[string]any, path []string) {
		for name, value := range table {
			here := append(path[:len(path):len(path)], name)
			sub, isTable := value.(map[string]any)
			key, err := Find(strings.Join(here, "."))
			if isTable && (err != nil || key.Type != JSON) {
				walk(sub, here)
				continue
			}
			list = append(list, leaf{here, value})
		}
	}
	walk(doc, nil)
	slices.SortFunc(list, func(a, b leaf) int { return slices.Compare(a.path, b.path) })
	return list
}

func (l leaf) into(set map[string]string) error {
	name := strings.Join(l.path, ".")
	key, err := Find(name)
	if err != nil {
		return err
	}
	if _, twice := set[key.Name]; twice {
		return fmt.Errorf("setting %s: set twice, under different spellings", key.Name)
	}
	text, ok := written(l.value)
	if !ok {
		return &ValueError{Key: key.Name, Value: fmt.Sprintf("%v", l.value), Want: key.Want()}
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
	case []any:
		var items []string
		for _, item := range v {
			text, ok := item.(string)
			if !ok {
				return "", false
			}
			items = append(items, text)
		}
		return strings.Join(items, ","), true
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
	case List:
		return strings.FieldsFunc(value, func(r rune) bool { return r == ',' })
	}
	return value
}

// SetFile sets one value in a file, which is made when it is missing, and gives
// the canonical value. What else is in the file stays, comments included. The
// file is replaced whole, and only its owner can read it.
func SetFile(path, name, value string) (string, error) {
	key, err := Find(name)
	if err != nil {
		return "", err
	}
	if value, err = key.Parse(value); err != nil {
		return "", err
	}
	_, err = change(path, func(text []byte) ([]byte, error) { return setText(text, key, value) })
	if err != nil {
		return "", fmt.Errorf("set %s: %w", key.Name, err)
	}
	return value, nil
}

// UnsetFile takes one setting out of a file and tells whether it was there. The
// name may be one that is not a setting, so that a mistake can be taken out.
func UnsetFile(path, name string) (bool, error) {
	if key, err := Find(name); err == nil {
		name = key.Name
	}
	changed, err := change(path, func(text []byte) ([]byte, error) { return unsetText(text, name) })
	if err != nil {
		return false, fmt.Errorf("unset %s: %w", name, err)
	}
	return changed, nil
}

// change replaces the text of a file, unless edit leaves it as it is. When
// somebody else changed the file meanwhile it begins again.
func change(path string, edit func(text []byte) ([]byte, error)) (bool, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link into somebody's collection of such files stays one
	}
	const tries = 8
	for range tries {
		before, err := readFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, err
		}
		after, err := edit(before)
		if err != nil {
			return false, err
		}
		if bytes.Equal(after, before) {
			return false, nil
		}
		done, err := replace(path, before, after)
		if done || err != nil {
			return done, err
		}
	}
	return false, fmt.Errorf("config %s: others change it all the time", path)
}

// replace puts a file in the place of the one at path, if that still reads
// before.
func replace(path string, before, after []byte) (done bool, err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fmt.Errorf("write config: %w", err)
	}
	f, err := os.CreateTemp(dir, ".config-*.tmp") // 0600
	if err != nil {
		return false, fmt.Errorf("write config: %w", err)
	}
	defer func() {
		if !done {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(after)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return false, fmt.Errorf("write config: %w", err)
	}
	if now, err := readFile(path); err != nil && !errors.Is(err, os.ErrNotExist) || !bytes.Equal(now, before) {
		return false, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return false, fmt.Errorf("write config: %w", err)
	}
	return true, nil
}
