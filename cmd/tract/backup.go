package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
)

func newBackup(a *app) *cobra.Command {
	to := ""
	cmd := &cobra.Command{
		Use: "backup [DEST]", Short: "Copy the store and verify the copy",
		Long: `Copy a consistent snapshot of the store, with HEAD and the settings in its folder, into
the new folder DEST. Other processes may keep writing meanwhile. tract checks the copy as
tract fsck does, and creates DEST only if the copy is sound. Open the copy with
tract --dir DEST.

Do not copy the files of a store in use with cp or similar tools.

With --to URL, copy the objects and refs to the store at that URL, for example one in a
PostgreSQL database; that store must have no branches. A store in a database is copied
into a folder without --to. Use this to move a store from one engine to the other; HEAD
and the settings are not copied with --to.`,
		Example: `  tract backup ../backup-monday
  tract backup "/backups/$(date +%F)" && tract --dir "/backups/$(date +%F)" log
  tract backup --to 'postgres://db.example/agents?repo=support'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 0) == (to == "") {
				return usageError("want DEST or --to URL, one of them")
			}
			return a.backup(cmd.Context(), strings.Join(args, ""), to)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "URL of the copy, instead of a folder")
	return cmd
}

type backupJSON struct {
	Path    string `json:"path"`
	Objects int    `json:"objects"`
	Commits int    `json:"commits"`
	Refs    int    `json:"refs"`
}

// backup copies the store into a new folder or, if a URL is given, into the store there.
func (a *app) backup(ctx context.Context, dest, url string) error {
	defer lowerGCPercent()()
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	var beside map[string][]byte
	if root := a.location.root; root != "" && url == "" {
		if beside, err = readHeadAndSettings(root, a.location.files, func(err error) error { return err }); err != nil {
			return err
		}
	}
	step, end := a.startProgress("backing up")
	o := maintain.BackupOptions{Progress: step}
	var health *maintain.FsckResult
	if url == "" {
		health, err = maintain.Backup(ctx, repo, dest, o)
	} else {
		health, err = maintain.BackupTo(ctx, repo, url, o)
		dest = withoutSecrets(url)
	}
	end()
	switch {
	case errors.Is(err, objects.ErrExists):
		return withHint(err, "DEST must not exist, and a store at URL must have no branches")
	case errors.Is(err, objects.ErrCorrupt):
		return withHint(err, "no backup was made; tract fsck explains the damage, tract recover salvages what is intact")
	case err != nil:
		return err
	}
	if err := writeHeadAndSettings(dest, beside); err != nil {
		return err
	}
	return a.emit(backupJSON{dest, health.Objects, health.Commits, health.Refs}, func(p *format.Printer) {
		p.Line(fmt.Sprintf("Copied to %s: %s in %s, %s; the copy is sound", dest, count(health.Objects, "object"), count(health.Commits, "commit"), count(health.Refs, "ref")))
	})
}
