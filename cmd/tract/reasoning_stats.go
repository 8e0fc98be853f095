package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
)

func newReasoningStats(a *app) *cobra.Command {
	o, by := &reasoningFlags{}, "model"
	cmd := &cobra.Command{
		Use: "stats [REV]", Short: "Count reasoning and its tokens",
		Long: `Count blocks of reasoning and their tokens. Two token counts are shown: an estimate, made
as compile and status make it for the revision or for HEAD, and the count that providers
reported.`,
		Example: "  tract reasoning stats\n  tract reasoning stats --by session --since 30d --json",
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.reasoningStats(cmd.Context(), o, by, args) },
	}
	o.addFlags(a, cmd)
	keys := []string{"model", "session", "source", "seal", "day"}
	a.choiceFlag(cmd, &by, "by", "count by "+orList(keys), keys...)
	return cmd
}

// reasoningStat counts the blocks of reasoning with the same key.
type reasoningStat struct {
	Model      *string `json:"model,omitempty"`
	Session    *string `json:"session,omitempty"`
	Source     *string `json:"source,omitempty"`
	Seal       *string `json:"seal,omitempty"`
	Day        *string `json:"day,omitempty"`
	Traces     int     `json:"traces"`
	Tokens     int     `json:"tokens"`     // by estimate, as compile counts them
	Reported   int64   `json:"reported"`   // by providers
	Unreported int     `json:"unreported"` // blocks whose tokens no provider reported
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

// reportedText describes the tokens that providers reported.
func (s *reasoningStat) reportedText() string {
	switch s.Unreported {
	case 0:
		return fmt.Sprintf("%d reported", s.Reported)
	case s.Traces:
		return "none reported"
	}
	return fmt.Sprintf("%d reported for %d of them", s.Reported, s.Traces-s.Unreported)
}

// setKey sets the JSON member for the key by to the name of the group.
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

func (a *app) reasoningStats(ctx context.Context, o *reasoningFlags, by string, args []string) error {
	walk, scale, err := a.walkReasoning(ctx, o, args, false)
	if err != nil {
		return err
	}
	list, byName := []*reasoningStat{}, map[string]*reasoningStat{}
	for t, err := range walk {
		if err != nil {
			return err
		}
		name := reasoningKey(t, by)
		s := byName[name]
		if s == nil {
			s = &reasoningStat{name: name}
			s.setKey(by)
			byName[name], list = s, append(list, s)
		}
		s.add(t)
	}
	sum := 0
	for _, s := range list {
		s.Tokens = scale.AddTokens(&sum, s.estimate)
	}
	slices.SortFunc(list, func(a, b *reasoningStat) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.name, b.name))
	})
	rows := [][]string{}
	for _, s := range list {
		rows = append(rows, []string{
			firstNonEmpty(s.name, "(unknown)"), count(s.Traces, "block"), "about " + strconv.Itoa(s.Tokens) + " tokens", s.reportedText(),
			fmt.Sprintf("%d sealed, %d without text", s.Sealed, s.Unread), s.First[:10] + " to " + s.Last[:10],
		})
	}
	return a.emitRows(list, rows)
}
