package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/settings"
)

type profileOptions struct {
	global, dryRun bool
}

func newProfile(a *app) *cobra.Command {
	o := &profileOptions{}
	cmd := &cobra.Command{
		Use: "profile", Short: "Save and load sets of settings",
		Long: `Save and load sets of settings: the provider, the model, and how it reasons. A profile is a
file NAME.toml in the folder profiles beside the store's settings or, with --global, beside
your own settings; a profile of the store hides your own profile of the same name. Profiles
never contain personal or terminal settings, prices, or the setting for masking secrets.`,
		Example: `  tract profile save deep --set reasoning.effort=high
  tract profile load deep
  tract profile list
  tract profile show deep`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	sub := func(use, short, long, example string, args cobra.PositionalArgs, run func(args []string) error) *cobra.Command {
		c := &cobra.Command{
			Use: use, Short: short, Long: long, Example: example, Args: args, ValidArgsFunction: a.completeProfiles,
			RunE: func(_ *cobra.Command, args []string) error { return run(args) },
		}
		cmd.AddCommand(c)
		return c
	}
	save := sub("save NAME", "Save the current settings as a profile",
		"Save the current settings, from files, the environment and flags, as a profile. An\nexisting profile of that name is replaced. Profiles that you save are trusted as saved;\none that came with the folder sets only what is safe (tract config trust).",
		"  tract profile save deep\n  tract profile save quick --set reasoning.effort=low --global", cobra.ExactArgs(1),
		func(args []string) error { return a.createOrReplaceProfile(o, args[0]) })
	load := sub("load NAME", "Load the settings of a profile",
		"Write each setting of a profile where tract config set would write it, and remove other\nsettings of the kinds that profiles contain. The environment still takes precedence.",
		"  tract profile load deep\n  tract profile load deep --global", cobra.ExactArgs(1),
		func(args []string) error { return a.loadProfile(o, args[0]) })
	list := sub("list", "List the profiles", "", "  tract profile list", cobra.NoArgs,
		func([]string) error { return a.listProfiles() })
	list.ValidArgsFunction = nil
	sub("show NAME", "List the settings of a profile", "", "  tract profile show deep", cobra.ExactArgs(1),
		func(args []string) error { return a.showProfile(o, args[0]) })
	remove := sub("delete NAME", "Remove a profile", "", "  tract profile delete deep", cobra.ExactArgs(1),
		func(args []string) error { return a.deleteProfile(o, args[0]) })
	remove.Flags().BoolVar(&o.dryRun, "dry-run", false, "only report what would be deleted")
	for _, c := range []*cobra.Command{save, load, remove} {
		c.Flags().BoolVar(&o.global, "global", false, "use your own profiles, not those of the store")
	}
	return cmd
}

type profileJSON struct {
	Name     string            `json:"name"`
	Origin   string            `json:"origin"`
	Settings map[string]string `json:"settings,omitempty"`
	Done     string            `json:"done,omitempty"`
}

// settingFilesWithProfiles returns the settings files beside which profiles are saved: the store's,
// then the user's.
func (a *app) settingFilesWithProfiles(global bool) ([]settings.File, error) {
	var files []settings.File
	if !global {
		p, err := a.findStore()
		if err != nil {
			return nil, err
		}
		if p.root != "" {
			files = append(files, p.settingsFile())
		}
	}
	if own := userSettings(); own.Path != "" {
		files = append(files, own)
	}
	return files, nil
}

// profileFile returns the file in which a profile is saved, or from which it is deleted.
func (a *app) profileFile(global bool, name string) (settings.File, error) {
	files, err := a.settingFilesToChange(global)
	if err != nil {
		return settings.File{}, err
	}
	if files.folder.Path != "" {
		return files.folder.Profile(name)
	}
	return files.own.Profile(name)
}

// readProfile reads a profile, and prints which of its settings are ignored.
func (a *app) readProfile(global bool, name string) (path string, set map[string]string, err error) {
	files, err := a.settingFilesWithProfiles(global)
	if err != nil {
		return "", nil, err
	}
	for _, config := range files {
		file, err := config.Profile(name)
		if err != nil {
			return "", nil, err
		}
		c, err := file.Read()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return file.Path, nil, err
		}
		if !c.Trusted {
			a.reportIgnored(file.Path, c.Unsafe())
			for _, i := range c.Unsafe() {
				delete(c.Set, i.Key.Name)
			}
		}
		return file.Path, c.Set, nil
	}
	return "", nil, &failure{
		code: codeNotFound, kind: "not_found", cause: fmt.Errorf("profile %q: no such profile", name),
		hint: "tract profile list shows profiles, tract profile save creates one",
	}
}

// createOrReplaceProfile writes the settings in effect as the profile of that name.
func (a *app) createOrReplaceProfile(o *profileOptions, name string) error {
	v, err := a.settings()
	if err != nil {
		return err
	}
	file, err := a.profileFile(o.global, name)
	if err != nil {
		return err
	}
	set := v.Profile()
	if err := file.WriteProfile(set); err != nil {
		return err
	}
	return a.emit(profileJSON{Name: name, Origin: file.Path, Settings: set, Done: "saved"}, func(*format.Printer) {
		a.info("profile %s has %s, in %s", name, count(len(set), "setting"), file.Path)
	})
}

func (a *app) loadProfile(o *profileOptions, name string) error {
	path, set, err := a.readProfile(o.global, name)
	if err != nil {
		return err
	}
	files, err := a.settingFilesToChange(o.global)
	if err != nil {
		return err
	}
	into := map[settings.File]map[string]string{}
	for key, value := range set {
		k, err := settings.Find(key)
		if err != nil {
			return err
		}
		file, err := files.fileSafeFor(k, value)
		if err != nil {
			return err
		}
		if into[file] == nil {
			into[file] = map[string]string{}
		}
		into[file][key] = value
	}
	for _, file := range files.withPath() {
		if err := file.LoadProfile(into[file]); err != nil { // what it does not name goes there too
			return withSettingFileHint(err, file.Path)
		}
	}
	if a.json {
		return format.Encode(a.out, profileJSON{Name: name, Origin: path, Settings: set, Done: "loaded"})
	}
	if len(into) == 0 {
		a.info("profile %s sets nothing", name)
	}
	for _, file := range files.withPath() {
		if n := len(into[file]); n > 0 {
			a.info("profile %s: %s in %s", name, count(n, "setting"), fileAndSection(file))
		}
	}
	return nil
}

func (a *app) listProfiles() error {
	files, err := a.settingFilesWithProfiles(false)
	if err != nil {
		return err
	}
	list, rows, seen := []profileJSON{}, [][]string{}, map[string]bool{}
	for _, config := range files {
		profiles, err := config.Profiles()
		if err != nil {
			return err
		}
		for _, file := range profiles {
			if name := file.ProfileName(); !seen[name] {
				seen[name] = true
				list, rows = append(list, profileJSON{Name: name, Origin: file.Path}), append(rows, []string{name, file.Path})
			}
		}
	}
	return a.emitRows(list, rows)
}

func (a *app) showProfile(o *profileOptions, name string) error {
	path, set, err := a.readProfile(o.global, name)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, key := range slices.Sorted(maps.Keys(set)) {
		rows = append(rows, []string{key, set[key]})
	}
	return a.emit(profileJSON{Name: name, Origin: path, Settings: set}, func(p *format.Printer) { p.Table(rows) })
}

func (a *app) deleteProfile(o *profileOptions, name string) error {
	file, err := a.profileFile(o.global, name)
	if err != nil {
		return err
	}
	path := file.Path
	if _, err := os.Lstat(path); err != nil {
		return withHint(fmt.Errorf("delete profile %q: %w", name, fs.ErrNotExist), "tract profile list shows where profiles are; --global selects your own")
	}
	done := "would be deleted"
	if !o.dryRun {
		if err := os.Remove(path); err != nil {
			return err
		}
		done = "deleted"
	}
	return a.emit(profileJSON{Name: name, Origin: path, Done: done}, func(*format.Printer) {
		a.info("profile %s %s", name, done)
	})
}
