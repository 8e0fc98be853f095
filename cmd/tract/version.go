package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
)

// version is the version of a release; make dist sets it.
var version = "0.1.0-dev"

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Long:    `Print the version of tract and what it was built with.`,
		Example: "  tract version --json",
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				v["module"] = info.Main.Path
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						v["commit"] = s.Value
					}
				}
			}
			return a.emit(v, func(p *format.Printer) {
				p.Text("tract version " + version + " (" + v["go"] + " " + v["os"] + "/" + v["arch"] + ")\n")
			})
		},
	}
}
