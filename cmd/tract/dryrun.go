package main

import (
	"context"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/llm"
)

// dryRun prints the request that would be sent, and on stderr which settings its
// fields come from.
func (a *app) dryRun(ctx context.Context, rev string, target llm.Target, o tract.AskOptions, then ...content.Block) error {
	req, err := a.repo.Request(ctx, rev, target, tract.RequestOptions{
		Settings: o.Settings, Budget: o.Budget, IncludeReasoning: o.IncludeReasoning, Tools: o.Tools, Stream: !o.NoStream, UserMessage: then,
	})
	if err != nil {
		return err
	}
	if err := a.writeJSON(append(req.Body, '\n')); err != nil {
		return err
	}
	v, err := a.settings()
	if err != nil {
		return err
	}
	fields, err := settingsOfFields(req, target)
	if err != nil {
		return err
	}
	for _, f := range fields {
		var names []string
		for _, name := range f.settings {
			item, err := v.Get(name)
			if err != nil {
				return err
			}
			names = append(names, name+" ("+originOf(item.Origin)+")")
		}
		a.info("%s ← %s", f.path, strings.Join(names, ", "))
	}
	return nil
}

// originOf is who set a value, in words.
func originOf(o settings.Origin) string {
	switch o.Layer {
	case settings.Call:
		return "flag " + o.Name
	case settings.Environment:
		return "environment " + o.Name
	}
	return o.String()
}

// requestField is a part of a request body and the settings that it would not be there
// without, or not be the same.
type requestField struct {
	path     string
	settings []string
}

// settingRemovers is what takes each setting out of a request.
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

// settingsOfFields finds the settings behind the fields of a body by writing it again
// without each of them, so that it holds for every dialect. Fields come in the
// order of the body.
func settingsOfFields(req *llm.Request, target llm.Target) ([]requestField, error) {
	var fields []requestField
	body := rawjson.Value(req.Body)
	for _, setting := range settingRemovers {
		less := *req
		less.Body = nil
		setting.take(&less.Settings)
		other, err := target.Encode(&less)
		if err != nil {
			return nil, err
		}
		for _, path := range differences(nil, "", body, other) {
			if setting.only == "" || setting.only == path {
				fields = addCause(fields, path, setting.name)
			}
		}
	}
	return sortByBody(fields, body), nil
}

func addCause(fields []requestField, path, setting string) []requestField {
	for i := range fields {
		if fields[i].path == path {
			fields[i].settings = append(fields[i].settings, setting)
			return fields
		}
	}
	return append(fields, requestField{path, []string{setting}})
}

// sortByBody sorts fields by where they stand in the body.
func sortByBody(fields []requestField, body rawjson.Value) []requestField {
	var sorted []requestField
	for key := range body.Members() {
		for _, f := range fields {
			if f.path == key || strings.HasPrefix(f.path, key+".") {
				sorted = append(sorted, f)
			}
		}
	}
	return sorted
}

// differences lists the members of an object that another one has not, or has in
// another way; of objects that both have, their members.
func differences(list []string, above string, v, other rawjson.Value) []string {
	for key, member := range v.Members() {
		path, was := above+key, other.Get(key)
		switch {
		case rawjson.Equal(member, was):
		case member.Kind() == rawjson.KindObject && was.Kind() == rawjson.KindObject:
			list = differences(list, path+".", member, was)
		default:
			list = append(list, path)
		}
	}
	return list
}
