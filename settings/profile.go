package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// A profile is a set of settings under a name: whom to ask, and how to think. It
// is a file of settings like any other, in the folder profiles beside the file
// that it is loaded into.

// inProfile tells whether a setting is kept in profiles. What is about a person,
// a terminal, a price or secrets stays as it is when one is loaded.
func inProfile(name string) bool {
	part, _, _ := strings.Cut(name, ".")
	return !slices.Contains([]string{"user", "core", "price", "secrets"}, part)
}

// ProfileFile is where the profile of a name lies, beside a file of settings. The
// name is letters, digits, ".", "-" and "_", and begins with a letter or a digit.
func ProfileFile(config, name string) (string, error) {
	ok := name != "" && len(name) <= 64 && isAlnum(name[0])
	for i := range len(name) {
		ok = ok && (isAlnum(name[i]) || strings.IndexByte(".-_", name[i]) >= 0)
	}
	if !ok {
		return "", &ProfileError{Name: name, Why: "a name is letters, digits, dots, - and _"}
	}
	return filepath.Join(filepath.Dir(config), "profiles", name+".toml"), nil
}

// Profiles lists the names of the profiles beside a file of settings.
func Profiles(config string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(filepath.Dir(config), "profiles"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list profiles: %w", err)
	}
	var names []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".toml")
		if path, err := ProfileFile(config, name); ok && err == nil && path != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// Profile is the values that somebody set and that a profile keeps, by canonical
// name.
func (v Values) Profile() map[string]string {
	set := v.Changed()
	maps.DeleteFunc(set, func(name, _ string) bool { return !inProfile(name) })
	return set
}

// Load gives the values with those of a profile in the place of all that a
// profile keeps: what it does not name has its default.
func (v Values) Load(profile map[string]string, from Origin) (Values, error) {
	set := maps.Clone(v.set)
	maps.DeleteFunc(set, func(name string, _ entry) bool { return inProfile(name) })
	v = Values{set}
	for name, value := range profile {
		var err error
		if v, err = v.Put(name, value, from); err != nil {
			return v, err
		}
	}
	return v, nil
}

// WriteProfile writes a file that sets these values and no others. Only its owner
// can read it.
func WriteProfile(path string, set map[string]string) error {
	doc := map[string]any{}
	for name, value := range set {
		key, err := Find(name)
		if err != nil {
			return err
		}
		if value, err = key.Parse(value); err != nil {
			return err
		}
		at, parts := doc, pathOf(key.Name)
		for _, part := range parts[:len(parts)-1] {
			sub, ok := at[part].(map[string]any)
			if !ok {
				sub = map[string]any{}
				at[part] = sub
			}
			at = sub
		}
		at[parts[len(parts)-1]] = key.literal(value)
	}
	text, err := toml.Marshal(doc)
	if err == nil {
		_, err = change(path, func([]byte) ([]byte, error) { return append([]byte("# a profile of tract\n"), text...), nil })
	}
	if err != nil {
		return fmt.Errorf("write profile %s: %w", path, err)
	}
	return nil
}

// LoadProfile makes a file of settings say of everything that a profile keeps
// what the profile says, in one step. What else is in the file stays, comments
// included.
func LoadProfile(config string, profile map[string]string) error {
	_, err := change(config, func(text []byte) ([]byte, error) {
		had, _, err := parseFile(text)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(had)) {
			if _, stays := profile[name]; stays || !inProfile(name) {
				continue
			}
			if text, err = unsetText(text, name); err != nil {
				return nil, err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(profile)) {
			key, err := Find(name)
			if err != nil {
				return nil, err
			}
			if had[key.Name] == profile[name] {
				continue
			}
			if text, err = setText(text, key, profile[name]); err != nil {
				return nil, err
			}
		}
		return text, nil
	})
	if err != nil {
		return fmt.Errorf("load profile: %w", err)
	}
	return nil
}

// ProfileError says that a profile cannot be what was asked for.
type ProfileError struct{ Name, Why string }

// Error names the profile.
func (e *ProfileError) Error() string { return fmt.Sprintf("profile %q: %s", e.Name, e.Why) }
