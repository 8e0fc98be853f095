package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
)

func newFsck(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "fsck", Short: "Check the whole store for damage",
		Long: `Check the whole store: every page of its files, every object against its hash, every
link, the values that commits derive from their parents, the refs, and the hash chain of
the ref log. For each problem, fsck explains its meaning and names the branches that it
affects. Nothing is changed. fsck can check a store that cannot be opened, and other
processes may use the store meanwhile. For a store of more than about 100,000 objects, fsck
needs a temporary file of 16 bytes for each object, in TMPDIR or /var/tmp.

The exit code is 5 if something is damaged. A problem marked "harmless" loses nothing and
does not count.`,
		Example: "  tract fsck\n  tract fsck --json\n  tract --dir /backups/monday fsck",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.fsck(cmd.Context()) },
	}
}

// healthJSON is the result of fsck.
type healthJSON struct {
	OK          bool         `json:"ok"`
	Objects     int          `json:"objects"`
	Commits     int          `json:"commits"`
	Refs        int          `json:"refs"`
	Entries     int          `json:"log_entries"`
	Purged      int          `json:"purged"`
	Unreachable int          `json:"unreachable"`
	Problems    []damageJSON `json:"problems"`
}

// damageJSON is one damage that fsck found.
type damageJSON struct {
	Where    string   `json:"where"`
	What     string   `json:"what"`
	Means    string   `json:"means,omitempty"`
	Object   string   `json:"object,omitempty"`
	Refs     []string `json:"refs,omitempty"`
	Harmless bool     `json:"harmless,omitempty"`
}

func newDamageJSON(d maintain.Damage) damageJSON {
	p := damageJSON{Where: d.Where, What: d.What, Means: d.Means, Refs: d.Refs, Harmless: d.Harmless}
	if !d.ID.IsZero() {
		p.Object = d.ID.String()
	}
	return p
}

func (a *app) fsck(ctx context.Context) error {
	defer lowerGCPercent()()
	p, err := a.findStore()
	if err != nil {
		return err
	}
	step, end := a.startProgress("checking")
	health, err := maintain.Fsck(ctx, p.url, maintain.FsckOptions{Files: p.files, Progress: step})
	end()
	if errors.Is(err, objects.ErrNotFound) {
		return withHint(err, "tract init creates a store here")
	}
	if err != nil {
		return a.withStoreURLHint(err)
	}
	if _, err := a.head(); err != nil && p.root != "" {
		health.Damages = append(health.Damages, maintain.Damage{Damage: objects.Damage{
			Where: "HEAD", What: err.Error(), Means: "nothing is lost: tract switch NAME rewrites it",
		}})
	}
	v := healthJSON{
		health.OK(), health.Objects, health.Commits, health.Refs, health.Entries, health.Purged, health.Unreachable, mapSlice(health.Damages, newDamageJSON),
	}
	err = a.emit(v, func(p *format.Printer) { a.printFsckResult(p, health) })
	if err == nil && !health.OK() {
		err = damagedStoreError(health.Damages, p)
	}
	return err
}

// damagedStoreError returns the error for a store with damages that are not harmless.
func damagedStoreError(damages []maintain.Damage, p *storeLocation) error {
	harmful := slices.DeleteFunc(slices.Clone(damages), func(d maintain.Damage) bool { return d.Harmless })
	err := fmt.Errorf("fsck: %s found: %w", count(len(harmful), "damage"), objects.ErrCorrupt)
	return withHint(err, "copy %s before anything else; tract recover %[1]s NEW salvages what is intact", shellQuote(p.displayName()))
}

// maxDamagesShown is the number of damages that are printed as text unless all are requested.
const maxDamagesShown = 20

func (a *app) printFsckResult(p *format.Printer, h *maintain.FsckResult) {
	p.Text(fmt.Sprintf("%s in %s, %s, %s of the ref log\n", count(h.Objects, "object"),
		count(h.Commits, "commit"), count(h.Refs, "ref"), count(h.Entries, "entry")))
	if h.Purged > 0 {
		p.Text(count(h.Purged, "object") + " purged: each has left a tombstone\n")
	}
	if h.Unreachable > 0 {
		p.Text(fmt.Sprintf("%s unreachable: see tract gc\n", count(h.Unreachable, "object")))
	}
	for i, d := range h.Damages {
		if i == maxDamagesShown && !a.verbose {
			p.Text(fmt.Sprintf("… and %d more (tract fsck -v, or --json, shows them)\n", len(h.Damages)-i))
			break
		}
		mark := "DAMAGED"
		if d.Harmless {
			mark = "harmless"
		}
		p.Line(fmt.Sprintf("%s %s: %s", mark, d.Where, d.What))
		if d.Means != "" {
			p.Line("    " + d.Means)
		}
	}
	if h.OK() {
		p.Text("The store is sound.\n")
	}
}
