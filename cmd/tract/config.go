package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/llm/providers"
)

type configOptions struct{ global, showOrigin, all bool }

func newConfig(a *app) *cobra.Command {
	o := &configOptions{}
	cmd := &cobra.Command{
		Use: "config", Short: "Get and set settings",
		Long: `Get and set settings. tract reads them from these places, of which a later one overrides
an earlier one: your own file, config.toml in the store's folder, the section for this
store in your own file, the environment, and flags.
Provider keys are not settings: they belong in environment variables such as
ANTHROPIC_API_KEY.

The store's folder may come from somebody else. Therefore config.toml there may only
change safe settings: the model, the effort, budgets, what a prompt includes, and stricter
masking of secrets. tract ignores settings there that name a program, a host or a
credential, that add to requests, or that delete data. tract config set writes such a
setting into your own file, for this store only; tract config trust accepts config.toml
as it is.`,
		Example: `  tract config set model claude-sonnet-4-5
  tract config set --global provider anthropic
  tract config list --show-origin
  tract config unset model
  tract config trust --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	sub := func(use, short, example string, args int, run func(args []string) error) *cobra.Command {
		c := &cobra.Command{
			Use: use, Short: short, Example: example, Args: cobra.ExactArgs(args), ValidArgsFunction: a.completeKeys,
			RunE: func(_ *cobra.Command, args []string) error { return run(args) },
		}
		cmd.AddCommand(c)
		return c
	}
	get := sub("get KEY", "Print one setting", "  tract config get reasoning.effort", 1,
		func(args []string) error { return a.configGet(o, args[0]) })
	set := sub("set KEY VALUE", "Set a setting", "  tract config set reasoning.include_in_context true", 2,
		func(args []string) error { return a.configSet(o, args[0], args[1]) })
	unset := sub("unset KEY", "Remove a setting from its file", "  tract config unset model", 1,
		func(args []string) error { return a.configUnset(o, args[0]) })
	list := sub("list", "List all settings", "  tract config list --show-origin", 0,
		func([]string) error { return a.configList(o) })
	list.ValidArgsFunction = nil
	for _, c := range []*cobra.Command{set, unset} {
		c.Flags().BoolVar(&o.global, "global", false, "use your own file, for all stores")
	}
	for _, c := range []*cobra.Command{get, list} {
		c.Flags().BoolVar(&o.showOrigin, "show-origin", false, "show where each value comes from, and what is ignored")
	}
	list.Flags().BoolVar(&o.all, "all", false, "include settings without a value, and explain each")
	cmd.AddCommand(newConfigTrust(a))
	return cmd
}

func newConfigTrust(a *app) *cobra.Command {
	o := &trustOptions{}
	cmd := &cobra.Command{
		Use: "trust", Short: "Trust the settings in the store's folder, or the folder", Args: cobra.NoArgs,
		Long: `Trust config.toml and the profiles in the store's folder as they are now: show their unsafe
settings, and apply them from now on. A file loses trust when any program other than tract
changes it.

With --folder, trust a folder that belongs to another user, or that other users can write
to. Anyone who can write to the folder can change your next prompt. The settings in the
folder still have to be trusted separately.

tract records what you trust in the folder of your own settings.`,
		Example: `  tract config trust --dry-run
  tract config trust
  tract config trust --folder /srv/shared/.tract
  tract config trust --revoke`,
		RunE: func(*cobra.Command, []string) error { return a.configTrust(o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.folder, "folder", "", "trust this folder, regardless of who owns it or can write to it")
	f.BoolVar(&o.revoke, "revoke", false, "withdraw trust")
	f.BoolVar(&o.dryRun, "dry-run", false, "only report what would be trusted")
	cmd.MarkFlagsMutuallyExclusive("revoke", "dry-run")
	a.completeFlag(cmd, "folder", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
	return cmd
}

type settingJSON struct {
	Key     string `json:"key"`
	Value   string `json:"value"`
	Origin  string `json:"origin"`
	Ignored string `json:"ignored,omitempty"` // why it does not count
	Doc     string `json:"doc,omitempty"`
}

func newSettingJSON(i settings.Item) settingJSON {
	return settingJSON{Key: i.Key.Name, Value: i.Value, Origin: i.Origin.String(), Doc: i.Key.Doc}
}

// newIgnoredJSON returns the JSON form of an ignored setting.
func newIgnoredJSON(i settings.Item) settingJSON {
	s := newSettingJSON(i)
	s.Ignored = "not trusted"
	return s
}

// originText describes where a value comes from and, if it is ignored, why.
func (s settingJSON) originText() string {
	if s.Ignored != "" {
		return "ignored: " + s.Ignored + ", " + s.Origin
	}
	return s.Origin
}

func (a *app) configGet(o *configOptions, key string) error {
	v, err := a.settings()
	if err != nil {
		return err
	}
	item, err := v.Get(key)
	if err != nil {
		return err
	}
	list := []settingJSON{newSettingJSON(item)}
	for _, i := range v.Ignored() {
		if o.showOrigin && i.Key.Name == item.Key.Name {
			list = append(list, newIgnoredJSON(i))
		}
	}
	switch {
	case a.json:
		return format.Encode(a.out, list[0])
	case len(list) == 1 && item.Value == "" && item.Origin.Layer == settings.Default:
		return negativeAnswer()
	}
	p := a.printer()
	for _, s := range list {
		p.Text(s.Value)
		if o.showOrigin {
			p.Text("\t" + s.originText())
		}
		p.Text("\n")
	}
	return p.Err()
}

func (a *app) configList(o *configOptions) error {
	v, err := a.settings()
	if err != nil {
		return err
	}
	list := []settingJSON{}
	for _, item := range v.List() {
		if item.Value != "" || o.all {
			list = append(list, newSettingJSON(item))
		}
	}
	for _, i := range v.Ignored() {
		if o.showOrigin {
			list = append(list, newIgnoredJSON(i))
		}
	}
	var rows [][]string
	for _, s := range list {
		row := []string{s.Key, s.Value}
		if o.all && !o.showOrigin {
			row = append(row, s.Doc)
		}
		if o.showOrigin {
			row = append(row, s.originText())
		}
		rows = append(rows, row)
	}
	return a.emitRows(list, rows)
}

// settingFiles are the files that config set, config unset and profiles change.
type settingFiles struct {
	folder settings.File // in the store's folder; without a path: none
	own    settings.File // of the user: all of it, or what it says about the store
}

// settingFilesToChange returns the files that a change of settings may go to: those of the store,
// or your own for all stores. For a store on a server it creates the folder.
func (a *app) settingFilesToChange(global bool) (settingFiles, error) {
	own := userSettings()
	if global && own.Path == "" {
		return settingFiles{}, withHint(errors.New("find your settings: no home folder"), "set HOME or XDG_CONFIG_HOME")
	}
	if global {
		return settingFiles{own: own}, nil
	}
	p, err := a.findStore()
	if err != nil {
		return settingFiles{}, err
	}
	if p.personal && !isFolder(p.root) {
		return settingFiles{}, withHint(errors.New("set a setting: there is no store here or above"), "tract init makes one; --global sets it for all your stores")
	}
	if p.root == "" {
		return settingFiles{}, withHint(fmt.Errorf("set a setting: the store %s has no file of settings", p.displayName()), "--global sets it for all your stores")
	}
	if err := p.makeFolderIfServer(); err != nil {
		return settingFiles{}, err
	}
	return settingFiles{folder: p.settingsFile(), own: p.userSettingsOfStore()}, nil
}

// withPath returns the files that have a path.
func (f settingFiles) withPath() []settings.File {
	return slices.DeleteFunc([]settings.File{f.folder, f.own}, func(file settings.File) bool { return file.Path == "" })
}

// fileSafeFor returns the file to store a value in: the file in the store's folder if the value is
// safe there, else the user's own file.
func (f settingFiles) fileSafeFor(k settings.Key, value string) (settings.File, error) {
	if f.folder.Path != "" && k.SafeAs(value) {
		return f.folder, nil
	}
	if f.own.Path == "" {
		err := fmt.Errorf("set %s: it is kept in your own settings, and there is no home folder", k.Name)
		return f.own, withHint(err, "set HOME or XDG_CONFIG_HOME; %s sets it for now", firstNonEmpty(k.Variable(), "--set"))
	}
	return f.own, nil
}

func (a *app) configSet(o *configOptions, key, value string) error {
	k, err := settings.Find(key)
	if err != nil {
		return err
	}
	if value, err = k.Parse(value); err != nil {
		return err
	}
	if err := checkProviderName(k, value); err != nil {
		return err
	}
	files, err := a.settingFilesToChange(o.global)
	if err != nil {
		return err
	}
	file, err := files.fileSafeFor(k, value)
	if err != nil {
		return err
	}
	if _, err := file.Set(key, value); err != nil {
		return withSettingFileHint(err, file.Path)
	}
	if file == files.folder && files.own.Path != "" { // which would win
		if _, err := files.own.Unset(key); err != nil {
			return withSettingFileHint(err, files.own.Path)
		}
	}
	return a.emit(settingJSON{Key: k.Name, Value: value, Origin: file.Path}, func(*format.Printer) {
		a.info("%s is %s in %s", k.Name, value, fileAndSection(file))
	})
}

// checkProviderName returns an error if a value of the setting provider is not the name of a provider.
func checkProviderName(k settings.Key, value string) error {
	if k.Name != "provider" || value == "" {
		return nil
	}
	_, err := providers.Open(value, providers.Config{})
	return err
}

// fileAndSection describes a settings file for messages, including the section if only one is
// meant.
func fileAndSection(f settings.File) string {
	if f.Store != "" {
		return f.Path + ", for this store"
	}
	return f.Path
}

// withSettingFileHint gives an error about what a file of settings contains a hint with its path.
func withSettingFileHint(err error, path string) error {
	f := classify(err)
	if f.kind == "failed" {
		f.code, f.kind, f.hint = codeUsage, "setting", "correct the file: "+path
	}
	return f
}

func (a *app) configUnset(o *configOptions, key string) error {
	files, err := a.settingFilesToChange(o.global)
	if err != nil {
		return err
	}
	was := false
	for _, file := range files.withPath() {
		gone, err := file.Unset(key)
		if err != nil {
			return withSettingFileHint(err, file.Path)
		}
		was = was || gone
	}
	if was {
		return nil
	}
	if _, err := settings.Find(key); err != nil {
		return err
	}
	a.info("%s is not set in %s", key, firstNonEmpty(files.folder.Path, files.own.Path))
	return negativeAnswer()
}
