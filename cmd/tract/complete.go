package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/internal/settings"
)

// maxCompletions is the largest number of names that a completion offers.
const maxCompletions = 200

func (a *app) completeFlag(cmd *cobra.Command, name string, c cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(name, c); err != nil {
		panic(err) // the command has no such flag
	}
}

func completeWords(list ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// printableNames drops candidates that cannot be typed. A candidate is a name and, after a tab,
// its description.
func printableNames(candidates []string) []string {
	list := candidates[:0]
	for _, c := range candidates {
		name, about, described := strings.Cut(c, "\t")
		if format.Line(name) != name {
			continue
		}
		if described {
			name += "\t" + format.Line(about)
		}
		list = append(list, name)
	}
	return list
}

// refNames returns the refs that begin with a prefix. Errors mean no completion.
func (a *app) refNames(ctx context.Context, begin string, folders ...string) []string {
	repo, err := a.open(ctx, false)
	if err != nil {
		return nil
	}
	var names []string
	for _, folder := range folders {
		for info, err := range repo.Refs(ctx, tract.RefQuery{Tags: folder == refs.Tags, Prefix: begin, Limit: maxCompletions}) {
			if err != nil {
				return printableNames(names)
			}
			names = append(names, info.Name)
		}
	}
	return printableNames(names)
}

func (a *app) completeBranches(cmd *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
	return a.refNames(cmd.Context(), begin, refs.Heads), cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeTags(cmd *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
	return a.refNames(cmd.Context(), begin, refs.Tags), cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeRevisions(cmd *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
	names := a.refNames(cmd.Context(), begin, refs.Heads, refs.Tags)
	if strings.HasPrefix("HEAD", begin) {
		names = append(names, "HEAD")
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeArguments completes an argument by what the usage line of the command calls it: a
// revision, a branch, a folder, or one of several words.
func (a *app) completeArguments(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
	names := strings.Fields(cmd.Use + " FILE")[1:]
	name := strings.Trim(names[min(len(args), max(len(names)-2, 0))], "[]{}.")
	switch {
	case strings.Contains(name, "REV") || slices.Contains([]string{"A", "B", "A..B", "BAD", "GOOD"}, name):
		return a.completeRevisions(cmd, args, begin)
	case name == "BRANCH":
		return a.completeBranches(cmd, args, begin)
	case name == "DIR" || name == "DEST":
		return nil, cobra.ShellCompDirectiveFilterDirs
	case name >= "a" && strings.Contains(name, "|"):
		return strings.Split(name, "|"), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// completeFirst completes the first argument with the names of a list. Errors mean no
// completion.
func (a *app) completeFirst(list func(context.Context, *tract.Repo) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		repo, err := a.open(cmd.Context(), false)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, err := list(cmd.Context(), repo)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return printableNames(names), cobra.ShellCompDirectiveNoFileComp
	}
}

// pendingCallCompletions returns the ids of the pending tool calls, each with a tab and the name of
// its tool.
func (a *app) pendingCallCompletions(ctx context.Context, repo *tract.Repo) (completions []string, err error) {
	name, err := a.branchOfFlagOrHead(ctx)
	if err != nil {
		return nil, err
	}
	calls, err := repo.Branch(name).Pending(ctx)
	for _, c := range calls {
		if !strings.Contains(c.CallID, "\t") { // which would end the name
			completions = append(completions, c.CallID+"\t"+c.Name)
		}
	}
	return completions, err
}

func rescueNames(ctx context.Context, repo *tract.Repo) ([]string, error) {
	rescues, err := repo.Rescues(ctx)
	return mapSlice(rescues, func(r tract.Rescue) string { return r.Name }), err
}

// completeKeys completes the name of a setting, then its value.
func (a *app) completeKeys(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return settingChoices(args[0]), cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, k := range settings.Keys() {
		names = append(names, k.Name+"\t"+k.Doc)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func settingChoices(key string) []string {
	k, err := settings.Find(key)
	switch {
	case err != nil:
		return nil
	case k.Type == settings.Bool:
		return []string{"true", "false"}
	}
	return k.Choices
}

func (a *app) completeSettings(_ *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
	var list []string
	if key, _, ok := strings.Cut(begin, "="); ok {
		for _, c := range settingChoices(key) {
			list = append(list, key+"="+c)
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
	for _, k := range settings.Keys() {
		list = append(list, k.Name+"=")
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func (a *app) completeProfiles(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	files, err := a.settingFilesWithProfiles(false)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, config := range files {
		if found, err := config.Profiles(); err == nil {
			names = append(names, mapSlice(found, settings.File.ProfileName)...)
		}
	}
	return printableNames(names), cobra.ShellCompDirectiveNoFileComp
}
