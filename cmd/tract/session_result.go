package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
)

// result commits the result of a pending tool call. After the last pending call, it asks the model
// to continue.
func (s *session) result(ctx context.Context, rest string) error {
	b, err := s.a.currentOrNewBranch(ctx)
	if err != nil {
		return err
	}
	if rest == "" {
		waits, err := s.printPending(ctx, b)
		if err == nil && !waits {
			s.a.info("no tool call is pending")
		}
		return err
	}
	result, err := s.parseResultArguments(ctx, b, rest)
	if err != nil {
		return err
	}
	if err := s.a.commitBlock(ctx, result, tract.AppendOptions{}); err != nil {
		return err
	}
	if waits, err := s.printPending(ctx, b); err != nil || waits {
		return err
	}
	return s.ask(ctx, nil)
}

// parseResultArguments makes a tool result from ID TEXT, ID -F FILE, ID --error TEXT or ID
// --abandon; for an ID alone the text is written in an editor.
func (s *session) parseResultArguments(ctx context.Context, b *tract.Branch, arguments string) (content.ToolResult, error) {
	id, text, _ := strings.Cut(arguments, " ")
	calls, err := b.Pending(ctx)
	if err != nil {
		return content.ToolResult{}, err
	}
	for _, c := range calls {
		if after, ok := strings.CutPrefix(arguments+" ", shellQuote(c.CallID)+" "); ok {
			id, text = c.CallID, strings.TrimSuffix(after, " ")
		}
	}
	result := content.ToolResult{CallID: id}
	waits := slices.ContainsFunc(calls, func(c content.ToolCall) bool { return c.CallID == id })
	if !waits && strings.TrimSpace(text) == "" {
		return result, s.a.withPendingCallsIfResultError(ctx, b, &tract.ResultError{Branch: b.Name(), CallID: id})
	}
	option, value, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch value = strings.TrimSpace(value); {
	case option == "--abandon" && value == "":
		result.Text, result.IsError = abandonedText, true
	case option == "--error" && value != "":
		result.Text, result.IsError = value, true
	case option == "-F" && value != "":
		result.Text, err = readFile(ctx, value)
	case option == "--abandon" || option == "--error" || option == "-F":
		err = withHint(fmt.Errorf("unknown command: /result %s %s", id, strings.TrimSpace(text)), "/result ID TEXT, /result ID -F FILE, /result ID --error TEXT, /result ID --abandon")
	case option == "":
		if result.Text, err = s.a.editText(ctx, ""); err == nil && result.Text == "" {
			err = withHint(fmt.Errorf("/result %s: %w", id, tract.ErrEmpty), "/result ID TEXT, or write a text in the editor")
		}
	default:
		result.Text = text
	}
	return result, err
}

// printPending prints the tool calls that wait for a result, and reports whether any does.
func (s *session) printPending(ctx context.Context, b *tract.Branch) (any bool, err error) {
	calls, err := b.Pending(ctx)
	for _, c := range calls {
		s.a.info("%s is waiting for its result: %s", c.Name, s.a.toolResultCommandOf(c.CallID))
	}
	return len(calls) > 0, err
}
