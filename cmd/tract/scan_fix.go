package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
)

// Why a secret is left.
const (
	whyNever = "where words came from and how a model was asked is never erased"
	whyName  = "a name is never erased, and the log of refs keeps it: give it another (tract branch -m, tract tag -d, user.name), and change the secret"
	whyOpen  = "an open tool loop needs it under its seal; fix it when somebody has spoken after the loop"
	whyStill = "it was said again meanwhile"
)

// fixedJSON is what became of the secrets that were found.
type fixedJSON struct {
	Fixed   bool                    `json:"fixed"`
	Secrets []any                   `json:"secrets"`
	Left    []any                   `json:"left"`
	Edits   map[string][]objects.ID `json:"edits"`
	erasureJSON
}

// fixSecrets masks the secrets that were found, and looks again at what is left.
func (a *app) fixSecrets(ctx context.Context, o *scanOptions, s tract.Scan, list []tract.Leak, looked uint64) error {
	p := tract.Fixing(list, o.rules...)
	p.Why, p.Dry = "scan --fix", true
	got, err := a.repo.Redact(ctx, p)
	if err != nil {
		return err
	}
	left := leftOf(list, false)
	fixed := !o.dry && len(got.Commits)+len(p.Objects) > 0
	if fixed {
		what := fmt.Sprintf("mask %s and erase %d bytes", count(uint64(len(list)-len(left)), "secret"), got.Bytes)
		if yes, err := a.sure(ctx, o.yes, what); err != nil || !yes {
			return cancelled(a, err)
		}
		step, end := a.progress("fixing")
		p.Dry, p.Progress = false, step
		got, err = a.repo.Redact(ctx, p, tract.Command("scan"))
		end()
		if err != nil {
			return err
		}
		still, _, err := a.findSecrets(ctx, &s, true)
		if err != nil {
			return err
		}
		left = leftOf(still, true)
	}
	found := secretsOf(list)
	if a.json {
		err = format.Encode(a.out, fixedJSON{fixed, secretsJSON(found), secretsJSON(left), got.Edits, erasureOf(got.Erasure)})
	} else {
		err = a.sayFixed(found, left, got, o.dry)
		a.note("%s in %s", count(uint64(len(list)), "secret"), count(looked, "commit"))
	}
	return a.leftOver(left, err)
}

// leftOf is those of the secrets that cannot be fixed, and why; after a fix, all that
// are found still.
func leftOf(list []tract.Leak, after bool) []format.Secret {
	left := []format.Secret{}
	for i, s := range secretsOf(list) {
		switch {
		case list[i].Named():
			s.Why = whyName
		case !list[i].Erasable():
			s.Why = whyNever
		case s.Open:
			s.Why = whyOpen
		case after:
			s.Why = whyStill
		default:
			continue
		}
		left = append(left, s)
	}
	return left
}

func (a *app) sayFixed(found, left []format.Secret, got *tract.RedactResult, dry bool) error {
	p := a.printer()
	for _, s := range found {
		p.Secret(s)
	}
	fixed, erased := "fixed", "erased"
	if dry {
		fixed, erased = "would be fixed", "would be erased"
	}
	if len(found) > 0 {
		p.Text(fmt.Sprintf("%s %s, %d bytes %s\n", count(uint64(max(len(found)-len(left), 0)), "secret"), fixed, got.Bytes, erased))
	}
	for _, branch := range slices.Sorted(maps.Keys(got.Edits)) {
		p.Line(fmt.Sprintf("%s on branch %s", count(uint64(len(got.Edits[branch])), "edit"), branch))
	}
	a.sayErased(p, got.Erasure)
	return p.Err()
}

// leftOver names the secrets that are left, and is the answer no when there are any.
func (a *app) leftOver(left []format.Secret, err error) error {
	if err != nil || len(left) == 0 {
		return err
	}
	for _, s := range left {
		what := s.Where
		if what == "content" {
			what = s.Commit.Kind.String()
		}
		a.note("left: %s in %s of %s: %s", s.Rule, what, s.Commit.ID.Short(), s.Why)
	}
	return no()
}
