package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/settings"
)

var _ = register("config", newConfig)

type configOptions struct{ global, origin, all bool }

func newConfig(a *app) *cobra.Command {
	o := &configOptions{}
	cmd := &cobra.Command{
		Use: "config", Short: "Get and set settings", GroupID: groupStore,
		Long: `Get and set settings. They come from the file of the user, the file of the store,
the environment and flags; a later one wins. Keys of providers are no settings:
they belong in the environment, such as ANTHROPIC_API_KEY.`,
		Example: `  tract config set model claude-sonnet-4-5
  tract config set --global provider anthropic
  tract config list --show-origin
  tract config unset model`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	get := &cobra.Command{
		Use: "get KEY", Short: "Print one setting", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeKeys,
		Example: "  tract config get reasoning.effort",
		RunE:    func(_ *cobra.Command, args []string) error { return a.configGet(o, args[0]) },
	}
	set := &cobra.Command{
		Use: "set KEY VALUE", Short: "Set a setting", Args: cobra.ExactArgs(2), ValidArgsFunction: a.completeKeys,
		Example: "  tract config set reasoning.include_in_context true",
		RunE:    func(_ *cobra.Command, args []string) error { return a.configSet(o, args[0], args[1]) },
	}
	unset := &cobra.Command{
		Use: "unset KEY", Short: "Take a setting out of its file", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeKeys,
		Example: "  tract config unset model",
		RunE:    func(_ *cobra.Command, args []string) error { return a.configUnset(o, args[0]) },
	}
	list := &cobra.Command{
		Use: "list", Short: "List all settings", Args: cobra.NoArgs,
		Example: "  tract config list --show-origin",
		RunE:    func(*cobra.Command, []string) error { return a.configList(o) },
	}
	for _, c := range []*cobra.Command{set, unset} {
		c.Flags().BoolVar(&o.global, "global", false, "in the file of the user, not that of the store")
	}
	for _, c := range []*cobra.Command{get, list} {
		c.Flags().BoolVar(&o.origin, "show-origin", false, "say where each value comes from")
	}
	list.Flags().BoolVar(&o.all, "all", false, "list those too that have no value")
	cmd.AddCommand(get, set, unset, list)
	return cmd
}

// settingJSON is one setting for a program.
type settingJSON struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	Doc    string `json:"doc,omitempty"`
}

func settingOf(i settings.Item) settingJSON {
	return settingJSON{Key: i.Key.Name, Value: i.Value, Origin: i.Origin.String(), Doc: i.Key.Doc}
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
	switch {
	case a.json:
		return format.Encode(a.out, settingOf(item))
	case item.Value == "" && item.Origin.Layer == settings.Default:
		return no()
	}
	p := a.printer()
	p.Text(item.Value)
	if o.origin {
		p.Text("\t" + item.Origin.String())
	}
	p.Text("\n")
	return p.Err()
}

func (a *app) configList(o *configOptions) error {
	v, err := a.settings()
	if err != nil {
		return err
	}
	list, rows := []settingJSON{}, [][]string{}
	for _, item := range v.List() {
		if item.Value == "" && !o.all {
			continue
		}
		list = append(list, settingOf(item))
		row := []string{item.Key.Name, item.Value}
		if o.origin {
			row = append(row, item.Origin.String())
		}
		rows = append(rows, row)
	}
	if a.json {
		return format.Encode(a.out, list)
	}
	p := a.printer()
	p.Table(rows)
	return p.Err()
}

// configFile is the file that set and unset change.
func (a *app) configFile(o *configOptions) (string, error) {
	if o.global {
		if path := settings.GlobalFile(os.LookupEnv); path != "" {
			return path, nil
		}
		return "", errors.New("find the user's settings: there is no home folder")
	}
	p, err := a.findPlace()
	if err != nil {
		return "", err
	}
	if p.personal && !isFolder(p.root) {
		return "", hinted(errors.New("set a setting: there is no store here or above"), "tract init makes one; --global sets it for all your stores")
	}
	if p.config() == "" {
		return "", hinted(fmt.Errorf("set a setting: the store %s has no file of settings", p.url), "--global sets it for all your stores")
	}
	return p.config(), nil
}

func (a *app) configSet(o *configOptions, key, value string) error {
	k, err := settings.Find(key)
	if err != nil {
		return err
	}
	if err := knownProvider(k, value); err != nil {
		return err
	}
	path, err := a.configFile(o)
	if err != nil {
		return err
	}
	canonical, err := settings.SetFile(path, key, value)
	if err != nil {
		return fileError(err, path)
	}
	if a.json {
		return format.Encode(a.out, settingJSON{Key: k.Name, Value: canonical, Origin: path})
	}
	a.note("%s is %s in %s", k.Name, canonical, path)
	return nil
}

// knownProvider refuses a value of the setting provider that no provider has as its name.
func knownProvider(k settings.Key, value string) error {
	if k.Name != "provider" || value == "" {
		return nil
	}
	_, err := providers.Open(value, providers.Config{})
	return err
}

// fileError names the file, when it is that which is wrong.
func fileError(err error, path string) error {
	f := classify(err)
	if f.kind == "failed" {
		f.code, f.kind, f.hint = codeUsage, "setting", "mend the file: "+path
	}
	return f
}

func (a *app) configUnset(o *configOptions, key string) error {
	path, err := a.configFile(o)
	if err != nil {
		return err
	}
	was, err := settings.UnsetFile(path, key)
	if err != nil {
		return fileError(err, path)
	}
	if !was {
		if _, err := settings.Find(key); err != nil {
			return err
		}
		a.note("%s is not set in %s", key, path)
		return no()
	}
	return nil
}
