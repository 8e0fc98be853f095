package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/llm/providers"
)

// newEnvironment is a topic of the help: it cannot be run.
func newEnvironment(*app) *cobra.Command {
	var b strings.Builder
	b.WriteString("Environment variables that tract reads. One that is empty counts as not set, but for\nTRACT_PAGER.\n")
	for _, group := range environment() {
		b.WriteString("\n" + group.title + ":\n\n")
		for _, v := range group.list {
			fmt.Fprintf(&b, "    %-35s  %s\n", v.name, v.about)
		}
	}
	b.WriteString("\nA flag wins over a variable, a variable over a file of settings. tract config list --all\n" +
		"says what each setting does, and tract config list --show-origin who set it.")
	return &cobra.Command{
		Use: "environment", Short: "Environment variables that tract reads", Long: b.String(), DisableFlagsInUseLine: true,
		Example: "  TRACT_BRANCH=try-2 TRACT_REASONING_EFFORT=high tract generate\n  NO_COLOR=1 PAGER=more tract log",
	}
}

type variable struct{ name, about string }

type variables struct {
	title string
	list  []variable
}

// environment is every variable that the program reads.
func environment() []variables {
	groups := []variables{
		{"Store, branch and messages", []variable{
			{"TRACT_DIR", "folder that holds the store, as --dir"},
			{"TRACT_BRANCH", "branch to work on, as --branch"},
			{"TRACT_DEBUG", "1: say what goes on, as --verbose"},
		}},
		{"Programs", []variable{
			{"TRACT_EDITOR", "editor; else VISUAL, EDITOR, or vi"},
			{"VISUAL", "editor, where none is set for tract"},
			{"EDITOR", "editor, where neither is set"},
			{"TRACT_PAGER", "pager (empty: none); else core.pager, PAGER, or less -FRX"},
			{"PAGER", "pager, where none is set for tract"},
			{"LESSCHARSET", "character set of less; utf-8 where it is not set"},
		}},
		{"The terminal", []variable{
			{"NO_COLOR", "anything: no colours, unless --color says otherwise"},
			{"CLICOLOR", "0: no colours"},
			{"CLICOLOR_FORCE", "anything but 0: colours in a pipe too"},
			{"TERM", "dumb: no colours"},
			{"COLORFGBG", "the terminal's colours by number, to shade thoughts"},
			{"COLUMNS", "width of the terminal, where it does not say"},
		}},
		{"Who you are, and where your files are", []variable{
			{"TRACT_AUTHOR", "author of commits: the setting user.name"},
			{"USER", "author of commits, where user.name is not set"},
			{"LOGNAME", "author of commits, where USER is not set either"},
			{"USERNAME", "author of commits, where none of these is set (Windows)"},
			{"HOME", "your folder"},
			{"USERPROFILE", "your folder (Windows)"},
			{"XDG_CONFIG_HOME", "folder of your settings, instead of ~/.config"},
			{"XDG_DATA_HOME", "folder of your personal store, instead of ~/.local/share"},
			{"SUDO_UID", "who called sudo: that user's files are trusted too"},
		}},
		{"Reasoning, by names that others gave", []variable{
			{"THINKING", "the setting reasoning.enabled"},
			{"REASONING_EFFORT", "the setting reasoning.effort"},
			{"CLEAR_THINKING", "true: send no past reasoning back; false: all of it"},
		}},
		{"What the Go libraries read", []variable{
			{"HTTPS_PROXY", "proxy for requests to providers"},
			{"HTTP_PROXY", "proxy for requests that are not encrypted"},
			{"NO_PROXY", "hosts that are asked without a proxy"},
			{"SSL_CERT_FILE", "file of certificates to trust"},
			{"SSL_CERT_DIR", "folder of certificates to trust"},
			{"TMPDIR", "folder for temporary files"},
			{"PATH", "folders in which programs are looked for"},
			{"TZ", "time zone in which times are shown"},
		}},
	}
	rest := variables{title: "Settings"}
	for _, k := range settings.Keys() {
		if name := k.Variable(); name != "" {
			rest.list = append(rest.list, variable{name, "the setting " + k.Name})
		}
	}
	return append(groups, providerKeys(), rest)
}

// providerKeys is the variables that hold keys.
func providerKeys() variables {
	keys := variables{title: "Keys of providers"}
	for _, name := range providers.Names() {
		p, _ := providers.Lookup(name)
		if p.Name != name {
			continue
		}
		for _, env := range p.KeyEnv {
			if at := slices.IndexFunc(keys.list, func(v variable) bool { return v.name == env }); at >= 0 {
				keys.list[at].about += ", " + name
			} else {
				keys.list = append(keys.list, variable{env, "key of " + name})
			}
		}
	}
	keys.list = append(keys.list, variable{"TRACT_API_KEY", "key of any provider, where it has none of its own"})
	return keys
}
