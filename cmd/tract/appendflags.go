package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// appendFlags are the flags of every command that commits a block.
type appendFlags struct {
	textFlags
	label, author, key string
	priority           priority.Level
	date               time.Time
	meta               map[string]string
}

func (o *appendFlags) addFlags(a *app, cmd *cobra.Command) {
	o.textFlags.addFlags(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.label, "message", "m", "", "label of the commit: a line for people, never sent")
	f.Func("meta", "named `value` of the commit, as KEY=VALUE", func(pair string) error {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || k == "" {
			return errors.New("want KEY=VALUE")
		}
		if o.meta == nil {
			o.meta = map[string]string{}
		}
		o.meta[k] = v
		return nil
	})
	f.StringVar(&o.author, "author", "", "author of the commit")
	f.Func("priority", "skip, normal or pinned", func(text string) (err error) {
		o.priority, err = priority.ParseLevel(text)
		return err
	})
	timeFlag(cmd, &o.date, "date", "`time` of the block, such as 2026-11-01T10:00")
	f.StringVar(&o.key, "key", "", "idempotency key: repeating the command commits nothing; other content under the same key is refused")
	a.completeFlag(cmd, "priority", completeWords("skip", "normal", "pinned"))
}

// appendOptions returns the library options for the flags.
func (o *appendFlags) appendOptions(a *app) tract.AppendOptions {
	return tract.AppendOptions{
		Author: o.author, Label: o.label, Key: o.key, Meta: o.meta, Priority: o.priority, Time: o.date, OnWarning: a.warn,
	}
}

// commitBlock commits a block to the current branch and prints it.
func (a *app) commitBlock(ctx context.Context, block content.Block, opts tract.AppendOptions) error {
	b, err := a.currentOrNewBranch(ctx)
	if err != nil {
		return err
	}
	ids, err := b.Append(ctx, []content.Block{block}, opts)
	if err != nil {
		return a.withPendingCallsIfResultError(ctx, b, err)
	}
	a.warnInvalidUTF8(block.String())
	return a.printAppended(ctx, b, ids...)
}

// changeAndPrint runs a change of a commit's effect on later prompts, and prints the new commits.
func (a *app) changeAndPrint(ctx context.Context, rev string, change func(b *tract.Branch, at string) ([]objects.ID, error)) error {
	b, err := a.currentOrNewBranch(ctx)
	if err != nil {
		return err
	}
	at, err := a.resolve(ctx, rev)
	if err != nil {
		return err
	}
	ids, err := change(b, at.String())
	if err != nil {
		return err
	}
	return a.printAppended(ctx, b, ids...)
}

func (a *app) printAppended(ctx context.Context, b *tract.Branch, ids ...objects.ID) error {
	var list []any
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
		shown, err := a.loadDetails(ctx, c)
		if err != nil {
			return err
		}
		list = append(list, format.CommitJSON(shown))
	}
	if !a.json {
		return p.Err()
	}
	return format.Encode(a.out, oneOrAll(list))
}

// putSetting applies a setting given as KEY=VALUE.
func putSetting(v settings.Values, pair string) (settings.Values, error) {
	key, value, ok := strings.Cut(pair, "=")
	if !ok {
		return v, &failure{code: codeUsage, kind: "usage", hint: "such as --set reasoning.effort=high", cause: fmt.Errorf("--set %q: want KEY=VALUE", pair)}
	}
	return v.Put(key, value, settings.Origin{Layer: settings.Call, Name: "--set"})
}
