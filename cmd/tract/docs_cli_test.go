package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestDocsCLIIsCurrent holds docs/cli to the words of --help.
func TestDocsCLIIsCurrent(t *testing.T) {
	const dir = "../../docs/cli"
	names := map[string]bool{}
	err := eachCommand(newRoot(newApp(nil, io.Discard, io.Discard)), func(cmd *cobra.Command) error {
		name, page := markdownFile(cmd), []byte(markdownPage(cmd))
		names[name] = true
		if *update {
			return os.WriteFile(filepath.Join(dir, name), page, 0o666)
		}
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, page) {
			t.Errorf("docs/cli/%s is stale: make docs (%v)", name, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if !names[page.Name()] {
			t.Errorf("docs/cli/%s is of no command any more: remove it", page.Name())
		}
	}
}

func markdownFile(cmd *cobra.Command) string {
	return strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".md"
}

func markdownPage(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n", cmd.CommandPath(), cmd.Short)
	if cmd.Long != "" {
		fmt.Fprintf(&b, "### Synopsis\n\n%s\n\n", cmd.Long)
	}
	fmt.Fprintf(&b, "```\n%s\n```\n\n", cmd.UseLine())
	for _, s := range manSectionsAfterDescription(cmd) {
		if s.text != "" {
			fmt.Fprintf(&b, "### %s\n\n```\n%s\n```\n\n", s.title, strings.TrimRight(s.text, "\n"))
		}
	}
	b.WriteString("### SEE ALSO\n\n")
	for _, other := range parentAndSubcommands(cmd) {
		fmt.Fprintf(&b, "* [%s](%s)\t - %s\n", other.CommandPath(), markdownFile(other), other.Short)
	}
	b.WriteString("\n")
	return b.String()
}
