package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/llm/providers"
)

// newEnvironment returns a help topic. It cannot be run.
func newEnvironment(*app) *cobra.Command {
	var b strings.Builder
	b.WriteString("Environment variables that tract reads. An empty variable counts as not set, except\nTRACT_PAGER.\n")
	for _, group := range environment() {
		b.WriteString("\n" + group.title + ":\n\n")
		for _, v := range group.list {
			fmt.Fprintf(&b, "    %-35s  %s\n", v.name, v.about)
		}
	}
	b.WriteString("\nFlags override variables, and variables override settings files. tract config list --all\n" +
		"explains each setting, and tract config list --show-origin shows where it is set.")
	return &cobra.Command{
		Use: "environment", Short: "Environment variables that tract reads", Long: b.String(), DisableFlagsInUseLine: true,
		Example: "  TRACT_BRANCH=try-2 TRACT_REASONING_EFFORT=high tract generate\n  NO_COLOR=1 PAGER=more tract log",
	}
}

type envVariable struct{ name, about string }

type envGroup struct {
	title string
	list  []envVariable
}

// environment returns all environment variables that the program reads.
func environment() []envGroup {
	groups := []envGroup{
		{"Store, branch and messages", []envVariable{
			{"TRACT_DIR", "folder of the store, as --dir"},
			{"TRACT_STORE", "URL of the store, as --store; --dir takes precedence"},
			{"TRACT_BRANCH", "branch to use, as --branch"},
			{"TRACT_DEBUG", "1: print what happens, as --verbose"},
		}},
		{"Programs", []envVariable{
			{"TRACT_EDITOR", "editor; else VISUAL, EDITOR, or vi"},
			{"VISUAL", "editor, if TRACT_EDITOR is not set"},
			{"EDITOR", "editor, if neither is set"},
			{"TRACT_PAGER", "pager (empty: none); else core.pager, PAGER, or less -FRX"},
			{"PAGER", "pager, if none is set for tract"},
			{"LESSCHARSET", "character set of less; utf-8 if not set"},
		}},
		{"The terminal", []envVariable{
			{"NO_COLOR", "any value: no colors, unless --color is given"},
			{"CLICOLOR", "0: no colors"},
			{"CLICOLOR_FORCE", "anything but 0: colors even in a pipe"},
			{"TERM", "dumb: no colors"},
			{"COLORFGBG", "colors of the terminal by number, to shade reasoning"},
			{"COLUMNS", "width of the terminal, if it does not report one"},
		}},
		{"User and folders", []envVariable{
			{"TRACT_AUTHOR", "author of commits: the setting user.name"},
			{"USER", "author of commits, if user.name is not set"},
			{"LOGNAME", "author of commits, if USER is not set either"},
			{"USERNAME", "author of commits, if none of these is set (Windows)"},
			{"HOME", "home folder"},
			{"USERPROFILE", "home folder (Windows)"},
			{"XDG_CONFIG_HOME", "folder of your settings (default ~/.config)"},
			{"XDG_DATA_HOME", "folder of your personal store (default ~/.local/share)"},
			{"SUDO_UID", "user who ran sudo: that user's files are trusted too"},
		}},
		{"Reasoning, under common names", []envVariable{
			{"THINKING", "the setting reasoning.enabled"},
			{"REASONING_EFFORT", "the setting reasoning.effort"},
			{"CLEAR_THINKING", "true: send no past reasoning; false: send all of it"},
		}},
		{"Read by the Go libraries", []envVariable{
			{"HTTPS_PROXY", "proxy for requests to providers"},
			{"HTTP_PROXY", "proxy for requests that are not encrypted"},
			{"NO_PROXY", "hosts to contact without a proxy"},
			{"SSL_CERT_FILE", "file of certificates to trust"},
			{"SSL_CERT_DIR", "folder of certificates to trust"},
			{"TMPDIR", "folder for temporary files"},
			{"PATH", "folders in which programs are searched"},
			{"TZ", "time zone of printed times"},
		}},
	}
	rest := envGroup{title: "Settings"}
	for _, k := range settings.Keys() {
		if name := k.Variable(); name != "" {
			rest.list = append(rest.list, envVariable{name, "the setting " + k.Name})
		}
	}
	return append(groups, providerKeys(), rest)
}

// providerKeys returns the environment variables that hold the keys of providers.
func providerKeys() envGroup {
	keys := envGroup{title: "Keys of providers"}
	for _, name := range providers.Names() {
		p, _ := providers.Lookup(name)
		if p.Name != name {
			continue
		}
		for _, env := range p.KeyEnv {
			if at := slices.IndexFunc(keys.list, func(v envVariable) bool { return v.name == env }); at >= 0 {
				keys.list[at].about += ", " + name
			} else {
				keys.list = append(keys.list, envVariable{env, "key of " + name})
			}
		}
	}
	keys.list = append(keys.list, envVariable{"TRACT_API_KEY", "key of any provider without one of its own"})
	return keys
}
