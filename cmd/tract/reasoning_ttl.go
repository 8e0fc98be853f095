package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tract-vcs/tract/maintain"
)

// expiredReasoning has the setting reasoning.ttl, and the size of the reasoning that is older.
type expiredReasoning struct {
	TTL    string `json:"ttl"`
	Blocks int    `json:"blocks"` // of reasoning, edits among them, that gc --prune would purge
	Bytes  int64  `json:"bytes"`

	age time.Duration
}

// findExpiredReasoning returns the setting reasoning.ttl and how much reasoning is older; nil if
// the setting has no value.
func (a *app) findExpiredReasoning(ctx context.Context) (*expiredReasoning, error) {
	e := a.reasoningTTL()
	if e == nil {
		return nil, nil
	}
	p := e.purgeOptions()
	p.DryRun = true
	got, err := maintain.Purge(ctx, a.repo, p)
	if err != nil {
		return nil, err
	}
	e.Blocks, e.Bytes = len(got.Commits), got.Bytes
	return e, nil
}

// reasoningTTL returns the setting reasoning.ttl; nil if it has no value.
func (a *app) reasoningTTL() *expiredReasoning {
	if length := a.loaded.Duration("reasoning.ttl"); length > 0 {
		return &expiredReasoning{TTL: a.loaded.Changed()["reasoning.ttl"], age: length}
	}
	return nil
}

// purgeOptions returns the options that purge the reasoning older than the ttl.
func (e *expiredReasoning) purgeOptions() maintain.PurgeOptions {
	return maintain.PurgeOptions{Reasoning: true, OlderThan: e.age, Why: "older than " + e.TTL}
}

// String describes how much reasoning is older than the ttl.
func (e *expiredReasoning) String() string {
	return fmt.Sprintf("%s older than reasoning.ttl (%s)", count(e.Blocks, "reasoning block"), e.TTL)
}
