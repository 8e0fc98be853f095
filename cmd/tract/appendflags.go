package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// appendFlags is what every command that commits a block can say about the commit.
type appendFlags struct {
	textFlags
	label, author, level, date, key string
	meta                            []string
}

func (o *appendFlags) flags(a *app, cmd *cobra.Command) {
	o.textFlags.flags(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.label, "message", "m", "", "a label on the commit: a line for people, never sent")
	f.StringArrayVar(&o.meta, "meta", nil, "a named value on the commit, as KEY=VALUE")
	f.StringVar(&o.author, "author", "", "who makes the commit")
	f.StringVar(&o.level, "priority", "", "skip, normal or pinned")
	f.StringVar(&o.date, "date", "", "when it was said, such as 2026-11-01T10:00")
	f.StringVar(&o.key, "key", "", "makes the command safe to repeat: what has the key is committed once, and other content under the same key is refused")
	a.completeFlag(cmd, "priority", cobra.FixedCompletions([]string{"skip", "normal", "pinned"}, cobra.ShellCompDirectiveNoFileComp))
}

// options is what the flags say, for the library.
func (o *appendFlags) appendOptions(a *app, cmd *cobra.Command) (tract.AppendOptions, error) {
	opts := tract.AppendOptions{Author: o.author, Label: o.label, Key: o.key, OnWarning: a.warn}
	for _, pair := range o.meta {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || k == "" {
			return opts, usageError(cmd, "--meta %q: want KEY=VALUE", pair)
		}
		if opts.Meta == nil {
			opts.Meta = map[string]string{}
		}
		opts.Meta[k] = v
	}
	if o.level != "" {
		l, err := priority.ParseLevel(o.level)
		if err != nil {
			return opts, usageError(cmd, "--%s", err)
		}
		opts.Priority = l
	}
	if o.date != "" {
		t, err := refs.ParseTime(o.date, time.Now())
		if err != nil {
			return opts, usageError(cmd, "--date: %s", err)
		}
		opts.Time = t
	}
	return opts, nil
}

// printAppended says what was committed.
func (a *app) printAppended(ctx context.Context, b *tract.Branch, ids ...objects.ID) error {
	var list []any
	var hurt damageLog
	p := a.printer()
	for _, id := range ids {
		c, err := a.repo.Show(ctx, id.String())
		if err != nil {
			return err
		}
		if !a.json {
			p.Receipt(b.Name(), format.Commit{Commit: c, Level: c.Priority})
			continue
		}
		shown, err := a.withDetails(ctx, c, &hurt)
		if err != nil {
			return err
		}
		list = append(list, format.CommitJSON(shown))
	}
	switch {
	case !a.json:
		return p.Err()
	case len(list) == 1:
		return hurt.result(format.Encode(a.out, list[0]))
	}
	return hurt.result(format.Encode(a.out, list))
}

// putSetting gives a setting a value written as KEY=VALUE.
func putSetting(v settings.Values, pair string) (settings.Values, error) {
	key, value, ok := strings.Cut(pair, "=")
	if !ok {
		return v, &failure{code: codeUsage, kind: "usage", hint: "such as --set reasoning.effort=high", cause: fmt.Errorf("--set %q: want KEY=VALUE", pair)}
	}
	return v.Put(key, value, settings.Origin{Layer: settings.Call, Name: "--set"})
}
