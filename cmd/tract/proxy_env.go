package main

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
)

func newProxyEnv(a *app) *cobra.Command {
	listen, token := defaultListen, ""
	cmd := &cobra.Command{
		Use:   "env [CLIENT]",
		Short: "Print what an agent needs to run through tract proxy",
		Long: `Print the environment variables that make CLIENT send its requests to tract proxy, for
eval in a shell, or the lines for its configuration file. Without CLIENT, print the
variables that the providers' SDKs read. tract never edits an agent's files.`,
		Example: `  eval "$(tract proxy env claude)"
  tract proxy env opencode`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: clientNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, known := findClient(strings.Join(args, ""))
			if !known && len(args) > 0 {
				return usageError("unknown client %q: want one of %s", args[0], strings.Join(clientNames(), ", "))
			}
			base := "http://" + listen
			if token != "" {
				base += "/t/" + url.PathEscape(token)
			}
			return a.printClientSetup(client, base)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", defaultListen, "address of the proxy")
	cmd.Flags().StringVar(&token, "token", "", "token of the proxy")
	return cmd
}

// clientSetupJSON is the setup of a client for the proxy.
type clientSetupJSON struct {
	Client    string            `json:"client,omitempty"`
	Variables map[string]string `json:"variables,omitempty"`
	Arguments []string          `json:"arguments,omitempty"`
	File      string            `json:"file,omitempty"`
	Content   string            `json:"content,omitempty"`
}

func (a *app) printClientSetup(c proxyClient, base string) error {
	setup := clientSetupJSON{Client: c.name, Arguments: c.argumentsFor(base), File: c.file, Content: strings.ReplaceAll(c.content, proxyBase, base)}
	if c.file == "" {
		setup.Variables = map[string]string{}
		upstreams, err := inheritedUpstreams(os.LookupEnv)
		if err != nil {
			return err
		}
		_, other := upstreams["anthropic"]
		for _, v := range c.environment(base, os.LookupEnv, !other) {
			name, value, _ := strings.Cut(v, "=")
			setup.Variables[name] = value
		}
	}
	return a.emit(setup, func(p *format.Printer) {
		for _, name := range slices.Sorted(maps.Keys(setup.Variables)) {
			p.Line(fmt.Sprintf("export %s=%s", name, shellQuote(setup.Variables[name])))
		}
		if len(setup.Arguments) > 0 {
			p.Line("# and run: " + c.name + " " + strings.Join(setup.Arguments, " "))
		}
		if setup.File != "" {
			p.Line("# put this into " + setup.File)
			for line := range strings.SplitSeq(setup.Content, "\n") {
				p.Line(line)
			}
		}
	})
}

func clientNames() []string {
	return mapSlice(proxyClients, func(c proxyClient) string { return c.name })
}
