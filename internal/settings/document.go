package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tract-vcs/tract/internal/secrets"
)

// Limits of a settings file. The time of the TOML decoder grows with the square of the number of
// keys, so the characters that every key or table needs are counted before the file is decoded.
const (
	maxFile  = 256 << 10 // bytes
	maxKeys  = 4000      // "=" and "[" characters
	maxDepth = 32        // parts of a key, with those of the tables it is in
)

// storeTable is the table in the user's file that has a section for each store. The key of a
// section is the path of the store's folder.
const storeTable = "store"

// docValue is one value of a document. It is a table only if the setting's value is a JSON object.
type docValue struct {
	section []string // of a store; nil: it is in none
	path    []string // in that section
	value   any
}

// decodeSortedValues decodes a document of a limited size and returns its values, sorted by name.
func decodeSortedValues(text []byte) ([]docValue, error) {
	if bytes.Count(text, []byte("="))+bytes.Count(text, []byte("[")) > maxKeys {
		return nil, fmt.Errorf("more than %d keys and tables", maxKeys)
	}
	var doc map[string]any
	if err := toml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	var list []docValue
	var walk func(value any, section, path []string) error
	walk = func(value any, section, path []string) error {
		if len(section)+len(path) > maxDepth {
			return fmt.Errorf("keys are nested more than %d deep", maxDepth)
		}
		l := docValue{section, slices.Clone(path), value}
		table, isTable := value.(map[string]any)
		key, known := lookup(l.name())
		switch {
		case !isTable || known && key.Type == JSON:
			list = append(list, l)
			return nil
		case section == nil && len(path) == 2 && path[0] == storeTable:
			section, path = l.path, nil
		}
		for name, value := range table {
			if err := walk(value, section, append(path, name)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(doc, nil, nil); err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b docValue) int {
		return cmp.Or(slices.Compare(a.section, b.section), slices.Compare(a.path, b.path))
	})
	return list, nil
}

// name returns the name of the setting as it is spelled in the file.
func (l docValue) name() string { return strings.Join(l.path, ".") }

// maskedItem returns an ignored setting as it is in the file, with secrets masked.
func (l docValue) maskedItem() Item {
	i := Item{Key: Key{Name: shortenForError(l.name())}}
	if key, known := lookup(l.name()); known {
		i.Key = key
	}
	if !isSecretName(l.name()) {
		text, _ := valueTextOrJSON(l.value)
		i.Value = secrets.Mask(text)
	}
	return i
}

// addTo adds the canonical value of a setting to a map.
func (l docValue) addTo(set map[string]string) error {
	key, err := Find(l.name())
	if err != nil {
		return err
	}
	if _, twice := set[key.Name]; twice {
		return fmt.Errorf("setting %s: set twice, under different spellings", key.Name)
	}
	text, ok := valueTextOrJSON(l.value)
	if !ok {
		return &ValueError{Key: key.Name, Value: shortenForError(fmt.Sprint(l.value)), Want: key.Want()}
	}
	if text == "" && key.Type == Text {
		return nil // an empty text is how a file says none
	}
	set[key.Name], err = key.Parse(text)
	return err
}

// valueTextOrJSON returns a TOML value as a user would type it, and a table as JSON. It reports
// false for a value of another type.
func valueTextOrJSON(value any) (text string, ok bool) {
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

// tomlValue converts a canonical value of the setting for the TOML encoder.
func (k Key) tomlValue(value string) any {
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

// tomlPath returns the keys that lead to a setting in a document.
func (k Key) tomlPath() []string {
	before, after, many := k.familyAffixes()
	if !many {
		return strings.Split(k.Name, ".")
	}
	path := append(strings.Split(strings.TrimSuffix(before, "."), "."), k.part)
	if after != "" {
		path = append(path, after[1:])
	}
	return path
}

// lineOf returns the line number of a value; 0 if unknown.
func lineOf(text []byte, of docValue) int {
	path := slices.Concat(of.section, of.path)
	for _, x := range parseExpressions(text) {
		if !x.isHeader && len(x.path) <= len(path) && slices.Equal(x.path, path[:len(x.path)]) {
			return 1 + bytes.Count(text[:x.start], []byte("\n"))
		}
	}
	return 0
}

// lineOfError returns the line number at which the decoder stopped; 0 if unknown.
func lineOfError(err error) int {
	if e := (*toml.DecodeError)(nil); errors.As(err, &e) {
		line, _ := e.Position()
		return line
	}
	return 0
}
