package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tract-vcs/tract/maintain"
)

// expiry has the setting reasoning.ttl, and the size of the reasoning that is older.
type expiry struct {
	TTL    string `json:"ttl"`
	Blocks int    `json:"blocks"` // of reasoning, edits among them, that gc --prune would purge
	Bytes  int64  `json:"bytes"`

	length time.Duration
}

// findExpiredReasoning returns the setting reasoning.ttl and how much reasoning is older; nil if
// the setting has no value.
func (a *app) findExpiredReasoning(ctx context.Context) (*expiry, error) {
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
func (a *app) reasoningTTL() *expiry {
	if length := a.loaded.Duration("reasoning.ttl"); length > 0 {
		return &expiry{TTL: a.loaded.Changed()["reasoning.ttl"], length: length}
	}
	return nil
}

// purgeOptions returns the options that purge the reasoning older than the ttl.
func (e *expiry) purgeOptions() maintain.PurgeOptions {
	return maintain.PurgeOptions{Reasoning: true, OlderThan: e.length, Why: "older than " + e.TTL}
}

// String describes how much reasoning is older than the ttl.
func (e *expiry) String() string {
	return fmt.Sprintf("%s older than reasoning.ttl (%s)", count(e.Blocks, "reasoning block"), e.TTL)
}
