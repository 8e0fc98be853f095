package main

import (
	"slices"
	"strings"
	"sync"

	"github.com/tract-vcs/tract"
)

// secretCounts is what was found in what a command committed.
type secretCounts struct {
	mu                     sync.Mutex
	masked, stored, sealed secretCount
}

// secretCount is how many secrets there were, and of which sorts.
type secretCount struct {
	count    uint64
	rules    []string
	reported bool
}

func (t *secretCount) add(rule string) {
	t.count++
	if !slices.Contains(t.rules, rule) {
		t.rules = append(t.rules, rule)
	}
}

// String is such as: 2 secrets (github, openai).
func (t *secretCount) String() string {
	return count(t.count, "secret") + " (" + strings.Join(t.rules, ", ") + ")"
}

// unreported tells whether there is something that was not told. It is told once.
func (t *secretCount) unreported() bool {
	is := t.count > 0 && !t.reported
	t.reported = t.reported || is
	return is
}

// countSecrets takes note of what was found; it is told when the command has done what
// it was asked for.
func (a *app) countSecrets(found []tract.Secret) {
	a.secretCounts.mu.Lock()
	defer a.secretCounts.mu.Unlock()
	for _, s := range found {
		switch {
		case s.Masked:
			a.secretCounts.masked.add(s.Rule)
		case s.Sealed:
			a.secretCounts.sealed.add(s.Rule)
		default:
			a.secretCounts.stored.add(s.Rule)
		}
	}
}

// reportSecrets says which secrets were masked and which are stored as they came, once
// for a command.
func (a *app) reportSecrets() {
	a.secretCounts.mu.Lock()
	defer a.secretCounts.mu.Unlock()
	if s := &a.secretCounts.masked; s.unreported() {
		a.info("%s masked before storing", s)
	}
	if s := &a.secretCounts.stored; s.unreported() {
		a.info("warning: %s stored unmasked; secrets.mask=all masks them, tract scan locates them", s)
	}
	if s := &a.secretCounts.sealed; s.unreported() {
		a.info("warning: %s stored unmasked because a seal covers them; tract scan locates them", s)
	}
}
