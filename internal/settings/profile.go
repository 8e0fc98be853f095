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

	"github.com/tract-vcs/tract/safefile"
)

// A profile is a named set of settings about the provider, the model and its reasoning. It is an
// ordinary settings file in the folder profiles, which is in the same folder as the settings file
// into which the profile is loaded.

// isStoredInProfiles reports whether profiles have values of a setting. Loading a profile does not
// change settings of the user, the terminal, prices and secrets.
func isStoredInProfiles(name string) bool {
	part, _, _ := strings.Cut(name, ".")
	return !slices.Contains([]string{"user", "core", "price", "secrets"}, part)
}

// Profile returns the file of a profile, in the folder profiles beside this file. The name
// consists of letters, digits, ".", "-" and "_", and begins with a letter or a digit.
func (f File) Profile(name string) (File, error) {
	ok := name != "" && len(name) <= 64 && isAlnum(name[0])
	for i := range len(name) {
		ok = ok && (isAlnum(name[i]) || strings.IndexByte(".-_", name[i]) >= 0)
	}
	if !ok {
		return f, &ProfileError{Name: name, Why: "a name is letters, digits, dots, - and _"}
	}
	dir, err := f.profileDirIfSafe()
	f.Path, f.Store = filepath.Join(dir, name+".toml"), ""
	return f, err
}

// profileDirIfSafe returns the folder of the profiles, which need not exist. In the folder of a store
// it may not be a symbolic link, which could lead anywhere, and its owner and permissions are checked.
func (f File) profileDirIfSafe() (dir string, err error) {
	dir = filepath.Join(filepath.Dir(f.Path), "profiles")
	if !f.Folder {
		return dir, nil
	}
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return dir, nil
	case err == nil && !info.IsDir():
		err = fmt.Errorf("open %s: it is not a folder: %w", dir, safefile.ErrUnsafe)
	case err == nil:
		err = f.Files.Check(dir, info)
	}
	return dir, err
}

// ProfileName returns the name of the profile in the file.
func (f File) ProfileName() string { return strings.TrimSuffix(filepath.Base(f.Path), ".toml") }

// Profiles returns the profiles beside the file.
func (f File) Profiles() ([]File, error) {
	dir, err := f.profileDirIfSafe()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list profiles: %w", err)
	}
	var files []File
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".toml")
		if file, err := f.Profile(name); ok && err == nil {
			files = append(files, file)
		}
	}
	return files, nil
}

// Profile returns the changed values of settings that belong in a profile, by canonical name.
func (v Values) Profile() map[string]string {
	set := v.Changed()
	maps.DeleteFunc(set, func(name, _ string) bool { return !isStoredInProfiles(name) })
	return set
}

// WithProfile returns the values with the settings of a profile in place of all settings that belong
// in one. A setting that the profile does not have gets its default.
func (v Values) WithProfile(profile map[string]string, from Origin) (Values, error) {
	set := maps.Clone(v.set)
	maps.DeleteFunc(set, func(name string, _ entry) bool { return isStoredInProfiles(name) })
	v.set = set
	for name, value := range profile {
		var err error
		if v, err = v.Put(name, value, from); err != nil {
			return v, err
		}
	}
	return v, nil
}

// WriteProfile makes the file set these values and no others. Only its owner can read it.
// Since the values come from the user, a file in a store's folder is trusted then.
func (f File) WriteProfile(set map[string]string) error {
	safe := true // without being trusted
	var edits []edit
	for _, name := range slices.Sorted(maps.Keys(set)) {
		e, err := newSetEdit(name, set[name])
		if err != nil {
			return err
		}
		edits, safe = append(edits, e), safe && e.key.SafeAs(e.value)
	}
	text, err := applyEdits([]byte("# a profile of tract\n"), nil, edits)
	if err == nil {
		_, err = f.updateText(func([]byte) ([]byte, error) { return text, nil })
	}
	if err == nil && f.Folder && !safe {
		err = f.Trust.Add(f.Path, text)
	}
	if err != nil {
		return fmt.Errorf("write profile %s: %w", f.Path, err)
	}
	return nil
}

// LoadProfile replaces the settings in the file that belong in a profile with those of a
// profile, in one step. Everything else in the file stays, including comments.
func (f File) LoadProfile(profile map[string]string) error {
	_, err := f.updateText(func(text []byte) ([]byte, error) {
		had, err := parseSettings(text, f.storeSection(), f.isTrusted(text))
		if err != nil {
			return nil, err
		}
		var edits []edit
		for _, name := range slices.Sorted(maps.Keys(had.Set)) {
			if _, stays := profile[name]; !stays && isStoredInProfiles(name) {
				edits = append(edits, edit{name: name})
			}
		}
		for _, name := range slices.Sorted(maps.Keys(profile)) {
			e, err := newSetEdit(name, profile[name])
			if err != nil {
				return nil, err
			}
			if value, ok := had.Set[e.name]; !ok || value != e.value {
				edits = append(edits, e)
			}
		}
		return applyEdits(text, f.storeSection(), edits)
	})
	if err != nil {
		return fmt.Errorf("load profile: %w", err)
	}
	return nil
}

// ProfileError is the error for an invalid profile.
type ProfileError struct{ Name, Why string }

// Error names the profile.
func (e *ProfileError) Error() string { return fmt.Sprintf("profile %q: %s", e.Name, e.Why) }
