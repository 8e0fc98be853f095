package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/llm"
)

// printDryRun prints a request and, on stderr, the settings that determine its fields.
func (a *app) printDryRun(ctx context.Context, rev string, target llm.Target, o tract.AskOptions, then ...content.Block) error {
	req, err := a.repo.Request(ctx, rev, target, tract.RequestOptions{
		Settings: o.Settings, Budget: o.Budget, IncludeReasoning: o.IncludeReasoning, Tools: o.Tools, Stream: !o.NoStream, UserMessage: then,
	})
	if err != nil {
		return err
	}
	if err := a.writeTerminalSafeJSON(append(req.Body, '\n')); err != nil {
		return err
	}
	causes, err := settingsByBodyField(req, target)
	if err != nil {
		return err
	}
	for member := range rawjson.Value(req.Body).Members() {
		for _, path := range slices.Sorted(maps.Keys(causes)) {
			if path != member && !strings.HasPrefix(path, member+".") {
				continue
			}
			var names []string
			for _, name := range causes[path] {
				item, err := a.loaded.Get(name)
				if err != nil {
					return err
				}
				names = append(names, name+" ("+originOf(item.Origin)+")")
			}
			a.info("%s ← %s", path, strings.Join(names, ", "))
		}
	}
	return nil
}

// originOf describes where a value was set.
func originOf(o settings.Origin) string {
	switch o.Layer {
	case settings.Call:
		return "flag " + o.Name
	case settings.Environment:
		return "environment " + o.Name
	}
	return o.String()
}

// settingRemovers are the functions that remove the effect of each setting from a request.
var settingRemovers = []struct {
	name string
	take func(s *llm.Settings)
	only string // the one field to look at; empty: all
}{
	{"model", func(s *llm.Settings) { s.Model += "-" }, "model"}, // which other fields depend on too
	{"max_output_tokens", func(s *llm.Settings) { s.MaxOutputTokens = 0 }, ""},
	{"temperature", func(s *llm.Settings) { s.Temperature = nil }, ""},
	{"tool_choice", func(s *llm.Settings) { s.ToolChoice = "" }, ""},
	{"reasoning.enabled", func(s *llm.Settings) { s.Reasoning.Disabled, s.Reasoning.Hidden = false, !s.Reasoning.Disabled }, ""},
	{"reasoning.effort", func(s *llm.Settings) { s.Reasoning.Effort = "" }, ""},
	{"reasoning.summary", func(s *llm.Settings) { s.Reasoning.Summary = "none" }, ""},
	{"reasoning.max_tokens", func(s *llm.Settings) { s.Reasoning.MaxTokens = 0 }, ""},
	{"reasoning.format", func(s *llm.Settings) { s.Reasoning.Native = false }, ""},
	{"request.extra", func(s *llm.Settings) { s.Extra = nil }, ""},
}

// settingsByBodyField returns the settings that determine each field of a body, in any dialect. It
// encodes the request again without each setting, and compares the bodies.
func settingsByBodyField(req *llm.Request, target llm.Target) (settingsByPath map[string][]string, err error) {
	causes := map[string][]string{}
	for _, setting := range settingRemovers {
		less := *req
		less.Body = nil
		setting.take(&less.Settings)
		other, err := target.Encode(&less)
		if err != nil {
			return nil, err
		}
		for _, path := range differingMembers(nil, "", rawjson.Value(req.Body), other) {
			if setting.only == "" || setting.only == path {
				causes[path] = append(causes[path], setting.name)
			}
		}
	}
	return causes, nil
}

// differingMembers lists the members in which an object differs from another, looking into objects
// that both have.
func differingMembers(list []string, above string, v, other rawjson.Value) []string {
	for key, member := range v.Members() {
		path, was := above+key, other.Get(key)
		switch {
		case rawjson.Equal(member, was):
		case member.Kind() == rawjson.KindObject && was.Kind() == rawjson.KindObject:
			list = differingMembers(list, path+".", member, was)
		default:
			list = append(list, path)
		}
	}
	return list
}
