package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
)

// Sources are what Load reads.
type Sources struct {
	Global File // of the user; without a path: none
	Repo   File // in the store's folder; without a path: none

	// Lookup gives an environment variable; nil: there is no environment.
	Lookup func(name string) (string, bool)
}

// GlobalFile returns the path of the user's file: tract/config.toml in $XDG_CONFIG_HOME or
// in ~/.config. It is empty when there is no home directory.
func GlobalFile(lookup func(name string) (string, bool)) string {
	if dir, ok := lookup("XDG_CONFIG_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "tract", "config.toml")
	}
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home, ok := lookup(name); ok && home != "" {
			return filepath.Join(home, ".config", "tract", "config.toml")
		}
	}
	return ""
}

// Load reads the files and then the environment; a later source overrides an earlier one. A
// missing file sets nothing, nor does an empty variable. The error names the file and the line, or
// the variable.
func Load(s Sources) (Values, error) {
	v := Values{set: map[string]entry{}}
	ofStore := File{}
	if s.Repo.Path != "" {
		ofStore = s.Global
		ofStore.Store = Resolve(filepath.Dir(s.Repo.Path))
	}
	for i, f := range []File{s.Global, s.Repo, ofStore} {
		if err := v.applyFile([]Layer{Global, Repo, Store}[i], f); err != nil {
			return Values{}, err
		}
	}
	if s.Lookup == nil {
		return v, nil
	}
	return v.applyEnvironment(s.Lookup)
}

// applyFile applies the settings of a file, if it exists, over the present values.
func (v *Values) applyFile(layer Layer, f File) error {
	if f.Path == "" {
		return nil
	}
	c, err := f.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	from := Origin{layer, f.Path}
	v.ignored = append(v.ignored, c.Ignored...)
	for name, value := range c.Set {
		key, _ := lookup(name)
		if own := v.item(key).Value; !c.Trusted && key.Safety == Stricter && !isStricterMasking(value, own) {
			if value != own {
				v.ignored = append(v.ignored, Item{key, value, from})
			}
			continue
		}
		v.set[name] = entry{value, from}
	}
	return nil
}

// aliases maps environment variables that other programs also use to settings.
var aliases = map[string]string{
	"THINKING": "reasoning.enabled", "REASONING_EFFORT": "reasoning.effort", "TRACT_PAGER": "core.pager", "TRACT_AUTHOR": "user.name",
}

// clearThinking is such a variable; it determines two settings.
const clearThinking = "CLEAR_THINKING"

// ClearThinking returns the settings for a value of CLEAR_THINKING: true sends no past reasoning
// back, false sends all of it. It returns nil if value is not a boolean.
func ClearThinking(value string) map[string]string {
	switch yes, ok := parseBool(value); {
	case !ok:
		return nil
	case yes == "true":
		return map[string]string{"reasoning.strip_from_context": "all"}
	}
	return map[string]string{"reasoning.strip_from_context": "none", "reasoning.include_in_context": "true"}
}

// applyEnvironment applies the settings in environment variables. The variables of tract override
// those of other programs.
func (v Values) applyEnvironment(lookup func(string) (string, bool)) (Values, error) {
	var err error
	put := func(variable string, meaning func(value string) map[string]string) {
		value, _ := lookup(variable)
		if value == "" || err != nil {
			return
		}
		set := meaning(value)
		if set == nil {
			err = fmt.Errorf("environment variable %s %q: want true or false", variable, shortenForError(value))
		}
		for name, value := range set {
			if v, err = v.Put(name, value, Origin{Environment, variable}); err != nil {
				err = fmt.Errorf("environment variable %s: %w", variable, err)
				return
			}
		}
	}
	is := func(name string) func(string) map[string]string {
		return func(value string) map[string]string { return map[string]string{name: value} }
	}
	put(clearThinking, ClearThinking)
	for _, variable := range slices.Sorted(maps.Keys(aliases)) {
		put(variable, is(aliases[variable]))
	}
	for _, key := range table {
		if variable := key.Variable(); variable != "" {
			put(variable, is(key.Name))
		}
	}
	if err != nil {
		return Values{}, err
	}
	return v, nil
}
