package main

import (
	"slices"
	"strings"
	"sync"

	"github.com/tract-vcs/tract"
)

// secretCounts holds the rules that found secrets in the commits of a command, grouped by whether
// the secrets were masked or stored.
type secretCounts struct {
	mu    sync.Mutex
	rules [len(secretMessages)][]string
}

// secretMessages are the reports about secrets that were masked, stored, or stored under a seal.
var secretMessages = [...]string{
	"%s (%s) masked before storing",
	"warning: %s (%s) stored unmasked; secrets.mask=all masks them, tract scan locates them",
	"warning: %s (%s) stored unmasked because a seal covers them; tract scan locates them",
}

// countSecrets counts secrets in a commit, for the report at the end of the command.
func (a *app) countSecrets(found []tract.Secret) {
	a.secretCounts.mu.Lock()
	defer a.secretCounts.mu.Unlock()
	for _, s := range found {
		i := 1
		switch {
		case s.Masked:
			i = 0
		case s.Sealed:
			i = 2
		}
		a.secretCounts.rules[i] = append(a.secretCounts.rules[i], s.Rule)
	}
}

// reportSecrets reports once which secrets were masked or stored.
func (a *app) reportSecrets() {
	a.secretCounts.mu.Lock()
	defer a.secretCounts.mu.Unlock()
	for i, rules := range a.secretCounts.rules {
		if len(rules) > 0 {
			a.info(secretMessages[i], count(len(rules), "secret"), strings.Join(slices.Compact(slices.Sorted(slices.Values(rules))), ", "))
		}
		a.secretCounts.rules[i] = nil
	}
}
