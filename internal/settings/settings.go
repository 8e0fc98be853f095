// Package settings defines the settings of tract: their names, allowed values and defaults, and
// records where each value was set.
//
// For most uses: [Load] reads the files and the environment; apply settings of the command line
// with [Values.With], and read a setting with Bool, Text, Int and similar methods. The zero
// [Values] has all defaults. A [File] reads and changes one file.
//
// The file in a store's folder may come from somebody else, for example with a cloned folder. Its
// settings of programs, hosts and credentials are ignored, unless the user has accepted the file
// as it is: see [Safety] and [Trust].
//
// Case, "-" and "_" are ignored in names and in values that are words, so that includeInContext
// and allButLast are understood. The error for an unknown name or an invalid value names the valid
// ones. Credentials are always refused: they belong in the environment, not in files that are
// copied and shared.
//
// The package reads no environment and knows no home directory: the caller passes a
// function that looks up variables, and the paths of files.
package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Layer is the place where a value was set. A later one wins.
type Layer uint8

// The layers.
const (
	Default     Layer = iota // not set
	Global                   // in the file of the user
	Repo                     // in the file of the store's folder
	Store                    // in the file of the user, for one store
	Environment              // by an environment variable
	Call                     // by a flag, or by an option of one call
)

var layerNames = [...]string{"default", "global", "repo", "store", "environment", "call"}

// String returns the name of the layer.
func (l Layer) String() string {
	if int(l) < len(layerNames) {
		return layerNames[l]
	}
	return fmt.Sprintf("layer(%d)", uint8(l))
}

// Origin is where a value was set.
type Origin struct {
	Layer Layer
	Name  string // the path of the file, the variable, or the flag; may be empty
}

// String returns the name, preceded by the name of the layer if the name does not imply it.
func (o Origin) String() string {
	switch {
	case o.Name == "":
		return o.Layer.String()
	case o.Layer == Environment || o.Layer == Call:
		return o.Name
	}
	return o.Layer.String() + " " + o.Name
}

// Item is the present value of one setting.
type Item struct {
	Key    Key
	Value  string // canonical; empty when it has none
	Origin Origin
}

// Values are the values of all settings. They are immutable: With returns new ones. Any
// number of goroutines may use them, and the zero Values has all defaults.
type Values struct {
	set     map[string]entry // by canonical name
	ignored []Item
}

type entry struct {
	value string
	from  Origin
}

// With returns the values with one setting changed for a call. Any accepted spelling of the name
// and the value may be used. The error is an *[UnknownError], a *[ValueError] or a *[SecretError].
func (v Values) With(name, value string) (Values, error) {
	return v.Put(name, value, Origin{Layer: Call})
}

// Put is like With, for a value with another origin. It replaces the present value, regardless of
// its layer.
func (v Values) Put(name, value string, from Origin) (Values, error) {
	key, err := Find(name)
	if err != nil {
		return v, err
	}
	if value, err = key.Parse(value); err != nil {
		return v, err
	}
	set := maps.Clone(v.set)
	if set == nil {
		set = map[string]entry{}
	}
	set[key.Name] = entry{value, from}
	v.set = set
	return v, nil
}

// WithAll sets several values for a call; an empty one stands for the default. The errors
// are those of With.
func (v Values) WithAll(values map[string]string) (Values, error) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] != "" {
			var err error
			if v, err = v.With(name, values[name]); err != nil {
				return v, err
			}
			continue
		}
		key, err := Find(name)
		if err != nil {
			return v, err
		}
		v.set = maps.Clone(v.set)
		delete(v.set, key.Name)
	}
	return v, nil
}

// Over returns the changes from base to v: base.WithAll of the result returns v.
func (v Values) Over(base Values) map[string]string {
	over := v.Changed()
	for name := range base.set {
		if _, set := over[name]; !set {
			over[name] = ""
		}
	}
	return over
}

// Ignored returns the settings of a file in the store's folder that are ignored because the
// user did not accept the file: see [Trust].
func (v Values) Ignored() []Item { return slices.Clone(v.ignored) }

// Changed returns the values that were set, by canonical name.
func (v Values) Changed() map[string]string {
	changed := make(map[string]string, len(v.set))
	for name, e := range v.set {
		changed[name] = e.value
	}
	return changed
}

// List returns every setting in the order of Keys. Of a family, it returns the settings that are
// set, sorted by name.
func (v Values) List() []Item {
	var items []Item
	for _, key := range table {
		if before, after, many := key.familyAffixes(); many {
			for _, name := range v.fullNamesInFamily(before, after) {
				member, _ := lookup(name)
				items = append(items, v.item(member))
			}
			continue
		}
		items = append(items, v.item(key))
	}
	return items
}

// Get returns one setting. The error is that of With.
func (v Values) Get(name string) (Item, error) {
	key, err := Find(name)
	if err != nil {
		return Item{}, err
	}
	return v.item(key), nil
}

func (v Values) item(key Key) Item {
	if e, ok := v.set[key.Name]; ok {
		return Item{key, e.value, e.from}
	}
	return Item{Key: key, Value: key.Default}
}

// UnknownError is the error for a name that is not that of a setting.
type UnknownError struct {
	Name    string
	Nearest string // one that there is and that looks like it; may be empty
}

// Error names the setting.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("setting %q: there is no such setting", shortenForError(e.Name))
}

// Hint names a setting with a similar name.
func (e *UnknownError) Hint() string {
	if e.Nearest == "" {
		return "`tract config list` shows all settings"
	}
	return "did you mean " + e.Nearest + "?"
}

// ValueError is the error for a value that a setting cannot have.
type ValueError struct {
	Key, Value string
	Want       string // what is allowed
}

// Error names the allowed values.
func (e *ValueError) Error() string {
	return fmt.Sprintf("setting %s %q: want %s", e.Key, e.Value, e.Want)
}

// SecretError is the error for a credential that was given as a setting. It never holds the
// value.
type SecretError struct{ Name string }

// Error names the setting.
func (e *SecretError) Error() string {
	return fmt.Sprintf("setting %q: keys and passwords are not kept in settings", shortenForError(e.Name))
}

// Hint says where the credential belongs.
func (e *SecretError) Hint() string {
	return "put it into an environment variable such as OPENAI_API_KEY: tract help environment lists those of all providers"
}

// foldName returns a form of a name that is the same for all its spellings.
func foldName(name string) string {
	return strings.ToLower(separatorRemover.Replace(strings.TrimSpace(name)))
}

var separatorRemover = strings.NewReplacer("-", "", "_", "")
