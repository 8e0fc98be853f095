package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
)

func (a *app) exportReasoning(cmd *cobra.Command, o *reasoningFlags, args []string) error {
	if o.as != "jsonl" && o.as != "otel" {
		return usageError(cmd, "--format %q: want jsonl or otel", o.as)
	}
	traces, err := a.walkReasoning(cmd, o, args, o.as == "jsonl")
	if err != nil {
		return err
	}
	if o.as == "jsonl" {
		return a.reasoningLines(traces)
	}
	var reply []format.Reasoning // the thoughts of one, oldest first
	write := func() error {
		if len(reply) == 0 {
			return nil
		}
		return format.EncodeLine(a.out, format.SpanJSON(reply))
	}
	var of objects.ID
	for t, err := range traces.Seq2 {
		if err != nil {
			return err
		}
		if len(reply) > 0 && (t.Commit.OriginID != of || of.IsZero()) {
			if err := write(); err != nil {
				return err
			}
			reply = nil
		}
		of, reply = t.Commit.OriginID, append([]format.Reasoning{t}, reply...)
	}
	return traces.damage.result(write())
}

// reasoningKeys is what thoughts can be counted by.
var reasoningKeys = []string{"model", "session", "source", "seal", "day"}

// reasoningStat is thoughts that have something in common.
type reasoningStat struct {
	Model      *string `json:"model,omitempty"`
	Session    *string `json:"session,omitempty"`
	Source     *string `json:"source,omitempty"`
	Seal       *string `json:"seal,omitempty"`
	Day        *string `json:"day,omitempty"`
	Traces     int     `json:"traces"`
	Tokens     int     `json:"tokens"`     // by estimate, as compile counts them
	Reported   int64   `json:"reported"`   // by providers
	Unreported int     `json:"unreported"` // thoughts the tokens of which no provider reported
	Bytes      int     `json:"bytes"`      // of readable text
	Sealed     int     `json:"sealed"`
	Unread     int     `json:"without_text"`
	First      string  `json:"first"`
	Last       string  `json:"last"`
	name       string
	estimate   int
}

func (s *reasoningStat) add(t format.Reasoning) {
	s.Traces++
	s.estimate += t.Estimate
	s.Reported += t.Reported
	if t.Reported == 0 {
		s.Unreported++
	}
	if t.Commit.Block != nil {
		text := t.Block.String()
		s.Bytes += len(text)
		if text == "" {
			s.Unread++
		}
		if !t.Block.Form().Seal.IsZero() {
			s.Sealed++
		}
	}
	made := t.Commit.Time.UTC().Format(time.RFC3339)
	if s.First == "" || made < s.First {
		s.First = made
	}
	s.Last = max(s.Last, made)
}

// reported says what providers reported of the tokens.
func (s *reasoningStat) reported() string {
	switch s.Unreported {
	case 0:
		return fmt.Sprintf("%d reported", s.Reported)
	case s.Traces:
		return "none reported"
	}
	return fmt.Sprintf("%d reported for %d of them", s.Reported, s.Traces-s.Unreported)
}

// setKey is a new count with its name in the place of what is counted by.
func (s *reasoningStat) setKey(by string) {
	*map[string]**string{"model": &s.Model, "session": &s.Session, "source": &s.Source, "seal": &s.Seal, "day": &s.Day}[by] = &s.name
}

func reasoningKey(t format.Reasoning, by string) string {
	switch seal := t.Block.Form().Seal; {
	case by == "day":
		return t.Commit.Time.UTC().Format(time.DateOnly)
	case by == "source":
		return t.Block.Source
	case by == "seal" && seal.IsZero():
		return "none"
	case by == "seal":
		return seal.Type.String()
	case by == "session":
		return t.Origin().Session
	default:
		return t.Origin().Model
	}
}

func (a *app) reasoningStats(cmd *cobra.Command, o *reasoningFlags, args []string) error {
	if !slices.Contains(reasoningKeys, o.by) {
		return usageError(cmd, "--by %q: want one of %v", o.by, reasoningKeys)
	}
	traces, err := a.walkReasoning(cmd, o, args, false)
	if err != nil {
		return err
	}
	list, byName := []*reasoningStat{}, map[string]*reasoningStat{}
	for t, err := range traces.Seq2 {
		if err != nil {
			return err
		}
		name := reasoningKey(t, o.by)
		s := byName[name]
		if s == nil {
			s = &reasoningStat{name: name}
			s.setKey(o.by)
			byName[name], list = s, append(list, s)
		}
		s.add(t)
	}
	sum := 0
	for _, s := range list {
		s.Tokens = traces.scale.AddTokens(&sum, s.estimate)
	}
	slices.SortFunc(list, func(a, b *reasoningStat) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.name, b.name))
	})
	if a.json {
		return traces.damage.result(format.Encode(a.out, list))
	}
	rows := [][]string{}
	for _, s := range list {
		rows = append(rows, []string{
			firstOf(s.name, "(unknown)"), count(uint64(s.Traces), "thought"), "about " + strconv.Itoa(s.Tokens) + " tokens", s.reported(), //nolint:gosec // a count
			fmt.Sprintf("%d sealed, %d without text", s.Sealed, s.Unread), s.First[:10] + " to " + s.Last[:10],
		})
	}
	p := a.printer()
	p.Table(rows)
	return traces.damage.result(p.Err())
}
