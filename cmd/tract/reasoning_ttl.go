package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tract-vcs/tract/maintain"
)

// expiry is the setting reasoning.ttl, and what has passed it.
type expiry struct {
	TTL    string `json:"ttl"`
	Blocks int    `json:"blocks"` // of reasoning, edits among them, that gc --prune would erase
	Bytes  int64  `json:"bytes"`

	length time.Duration
}

// expired finds the reasoning that has passed reasoning.ttl; nil: there is no ttl.
func (a *app) expired(ctx context.Context) (*expiry, error) {
	e := a.ttl()
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

// ttl is the setting; nil: there is none.
func (a *app) ttl() *expiry {
	if length := a.loaded.Duration("reasoning.ttl"); length > 0 {
		return &expiry{TTL: a.loaded.Changed()["reasoning.ttl"], length: length}
	}
	return nil
}

// purgeOptions is what purges the reasoning that has passed the ttl.
func (e *expiry) purgeOptions() maintain.PurgeOptions {
	return maintain.PurgeOptions{Reasoning: true, OlderThan: e.length, Why: "older than " + e.TTL}
}

// String describes how much is older than the ttl.
func (e *expiry) String() string {
	return fmt.Sprintf("%s older than reasoning.ttl (%s)", count(e.Blocks, "reasoning block"), e.TTL)
}
