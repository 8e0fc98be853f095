package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
)

type gcOptions struct {
	prune, pack, dryRun, yes bool
	grace                    string
}

func newGC(a *app) *cobra.Command {
	o := &gcOptions{}
	cmd := &cobra.Command{
		Use: "gc", Short: "Remove unreachable objects and repack the store",
		Long: `List the unreachable objects: those to which no branch, tag or rescued response leads
now or led before. A commit that a branch once pointed to stays reachable as long as the
reflog has it. --prune removes unreachable objects and repacks the store; --pack only
repacks the store.

Repacking changes no content. A repacked store takes a half to a third of the space,
because each conversation is stored together and compressed. New objects are written
without compression, which is faster, until the next gc. tract never runs gc by itself.

If the setting reasoning.ttl is an age, --prune also purges reasoning older than that, as
tract purge --reasoning does: the commits stay, but their text and seals are removed.
Pinned reasoning and reasoning of open turns is kept. A purge cannot be undone.

Objects newer than --grace are kept, since another process may be about to refer to them.
Other processes may use the store meanwhile. Nothing is removed from a damaged store.`,
		Example: "  tract gc\n  tract gc --pack\n  tract gc --prune\n  tract gc --prune --grace 0",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.gc(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.prune, "prune", false, "remove unreachable objects and repack the store")
	f.BoolVar(&o.pack, "pack", false, "only repack the store")
	f.BoolVar(&o.dryRun, "dry-run", false, "only report what would be removed (default)")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask before purging reasoning")
	f.StringVar(&o.grace, "grace", "14d", "keep unreachable objects newer than this, such as 12h, 3d or 0")
	cmd.MarkFlagsMutuallyExclusive("prune", "pack", "dry-run")
	cmd.MarkFlagsMutuallyExclusive("pack", "grace")
	a.completeFlag(cmd, "grace", completeWords("14d", "1d", "1h", "0"))
	return cmd
}

// gcJSON is what gc removed, or would remove.
type gcJSON struct {
	Pruned bool         `json:"pruned"`
	Packed bool         `json:"packed"`
	Gone   int          `json:"gone"`
	Bytes  int64        `json:"bytes"`
	Young  int          `json:"young"`
	Kept   int          `json:"kept"`
	Before int64        `json:"size_before"`
	After  int64        `json:"size_after"`
	Some   []objects.ID `json:"some"`

	Expired *expiredReasoning `json:"expired,omitempty"` // when reasoning.ttl is set
}

func (a *app) gc(ctx context.Context, o *gcOptions) error {
	defer lowerGCPercent()()
	grace, ok := parseAge(o.grace)
	if !ok {
		return usageError("--grace %q: want a time such as 14d, 12h or 0", o.grace)
	}
	repo, err := a.open(ctx, o.prune || o.pack)
	if err != nil {
		return err
	}
	s := objects.Sweep{Dry: !o.prune && !o.pack, Before: time.Now().Add(-grace)}
	switch {
	case o.pack:
		s.Before = time.Time{}
	case grace == 0:
		s.Before = s.Before.Add(time.Hour) // what was put this very moment too, and clocks differ
	}
	if s.Keep, err = a.detachedHead(); err != nil {
		return err
	}
	old, err := a.purgeExpiredReasoning(ctx, o)
	if err != nil {
		return a.withRecoverHint(err)
	}
	step, end := a.startProgress("searching")
	s.Progress = step
	got, err := maintain.GC(ctx, repo, s)
	end()
	if err != nil {
		return err
	}
	if a.json {
		some := append([]objects.ID{}, got.Examples...)
		return format.Encode(a.out, gcJSON{o.prune, !s.Dry, got.Removed, got.RemovedBytes, got.Young, got.Kept, got.SizeBefore, got.SizeAfter, some, old})
	}
	return a.printGC(o, got, old)
}

// purgeExpiredReasoning purges the reasoning that is older than reasoning.ttl, if --prune is given
// and the user confirms. It returns what was, or would be, purged.
func (a *app) purgeExpiredReasoning(ctx context.Context, o *gcOptions) (*expiredReasoning, error) {
	if o.pack {
		return nil, nil
	}
	old, err := a.findExpiredReasoning(ctx)
	if err != nil || old == nil || !o.prune || old.Blocks == 0 {
		return old, err
	}
	if err := a.confirm(ctx, o.yes, fmt.Sprintf("purge %s, %d bytes", old, old.Bytes)); err != nil {
		return nil, err
	}
	step, end := a.startProgress("purging")
	defer end()
	p := old.purgeOptions()
	p.Progress, p.Spools = step, []string{a.spoolFolder()}
	_, err = maintain.Purge(ctx, a.repo, p)
	return old, err
}

func (a *app) printGC(o *gcOptions, got objects.Swept, old *expiredReasoning) error {
	p := a.printer()
	if old != nil {
		done := "would be purged (tract gc --prune)"
		if o.prune {
			done = "purged"
		}
		p.Text(fmt.Sprintf("%s, %d bytes, %s\n", old, old.Bytes, done))
	}
	gone := fmt.Sprintf("%s, %d bytes, ", count(got.Removed, "object"), got.RemovedBytes)
	switch {
	case o.pack:
		got.Kept, got.Young = got.Kept+got.Young, 0
	case o.prune:
		p.Text(gone + "removed\n")
	default:
		p.Text(gone + "would be removed (tract gc --prune)\n")
	}
	if got.Young > 0 {
		p.Text(fmt.Sprintf("%s unreachable, or needed by such, kept: they may be newer than %s\n", count(got.Young, "object"), o.grace))
	}
	p.Text(count(got.Kept, "object") + " kept\n")
	size := "The store takes " + kib(got.SizeAfter)
	if o.prune || o.pack {
		size += ", and took " + kib(got.SizeBefore)
	}
	p.Text(size + "\n")
	return p.Err()
}

// detachedHead returns the commit of a detached HEAD; none if HEAD is on a branch.
func (a *app) detachedHead() ([]objects.ID, error) {
	h, err := a.head()
	if err != nil || h.branch != "" {
		return nil, err
	}
	return []objects.ID{h.commit}, nil
}
