package main

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

var _ = register(newMan)

type manOptions struct{ format, dir string }

func newMan(a *app) *cobra.Command {
	o := &manOptions{}
	cmd := &cobra.Command{
		Use: "man [COMMAND]", Short: "Print the manual page of a command, or write them all", GroupID: groupStore,
		Long: `Print the manual page of a command (of tract itself when none is named), or write
the pages of all commands into a folder. They are made from the same words as
--help.`,
		Example: `  tract man log | man -l -
  tract man --dir ~/.local/share/man/man1
  tract man --format markdown --dir docs/cli`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.man(cmd, o, args) },
	}
	cmd.Flags().StringVar(&o.format, "format", "man", "man or markdown")
	cmd.Flags().StringVar(&o.dir, "dir", "", "folder to write all pages to")
	a.completeFlag(cmd, "format", cobra.FixedCompletions([]string{"man", "markdown"}, cobra.ShellCompDirectiveNoFileComp))
	if f := cmd.Flags().Lookup("dir"); f != nil {
		f.Usage += " (not the store)"
	}
	return cmd
}

func (a *app) man(cmd *cobra.Command, o *manOptions, args []string) error {
	root := cmd.Root()
	root.DisableAutoGenTag = true // a page changes only when its words do
	header := &doc.GenManHeader{Title: "TRACT", Section: "1", Source: "tract " + version, Manual: "tract manual", Date: &time.Time{}}
	if o.format != "man" && o.format != "markdown" {
		return usage(cmd, "--format %q: want man or markdown", o.format)
	}
	if o.dir != "" {
		if err := os.MkdirAll(o.dir, 0o777); err != nil {
			return err
		}
		if o.format == "man" {
			return doc.GenManTree(root, header, o.dir)
		}
		return doc.GenMarkdownTree(root, o.dir)
	}
	page, rest, err := root.Find(args)
	if err != nil || len(rest) > 0 {
		return usage(cmd, "%q is no command of tract", strings.Join(args, " "))
	}
	page.DisableAutoGenTag = true
	if o.format == "man" {
		header.Title = ""
		return doc.GenMan(page, header, a.out)
	}
	return doc.GenMarkdown(page, a.out)
}
