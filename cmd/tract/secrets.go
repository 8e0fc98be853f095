package main

import (
	"slices"
	"strings"
	"sync"

	"github.com/tract-vcs/tract"
)

// secretsFound is what was found in what a command committed.
type secretsFound struct {
	mu                   sync.Mutex
	masked, left, sealed tally
}

// tally is how many secrets there were, and of which sorts.
type tally struct {
	count uint64
	rules []string
	told  bool
}

func (t *tally) add(rule string) {
	t.count++
	if !slices.Contains(t.rules, rule) {
		t.rules = append(t.rules, rule)
	}
}

// String is such as: 2 secrets (github, openai).
func (t *tally) String() string {
	return count(t.count, "secret") + " (" + strings.Join(t.rules, ", ") + ")"
}

// news tells whether there is something that was not told. It is told once.
func (t *tally) news() bool {
	is := t.count > 0 && !t.told
	t.told = t.told || is
	return is
}

// noteSecrets takes note of what was found; it is told when the command has done what
// it was asked for.
func (a *app) noteSecrets(found []tract.Secret) {
	a.secrets.mu.Lock()
	defer a.secrets.mu.Unlock()
	for _, s := range found {
		switch {
		case s.Masked:
			a.secrets.masked.add(s.Rule)
		case s.Sealed:
			a.secrets.sealed.add(s.Rule)
		default:
			a.secrets.left.add(s.Rule)
		}
	}
}

// tellSecrets says which secrets were masked and which are stored as they came, once
// for a command.
func (a *app) tellSecrets() {
	a.secrets.mu.Lock()
	defer a.secrets.mu.Unlock()
	if s := &a.secrets.masked; s.news() {
		a.note("%s masked before anything was stored", s)
	}
	if s := &a.secrets.left; s.news() {
		a.note("warning: %s stored as they came; secrets.mask=all masks such, tract scan shows where", s)
	}
	if s := &a.secrets.sealed; s.news() {
		a.note("warning: %s stored as they came, since a seal covers them; tract scan shows where", s)
	}
}
