package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
)

func newBackup(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "backup DEST", Short: "Copy the store and verify the copy",
		Long: `Copy the store as it is at one moment, with HEAD and the settings of its folder, into the
new folder DEST. Others may keep writing. The copy is checked as by tract fsck, and DEST
appears only if it is sound: a folder for tract --dir DEST.

Do not copy the files of a store in use by other means.`,
		Example: `  tract backup ../backup-monday
  tract backup "/backups/$(date +%F)" && tract --dir "/backups/$(date +%F)" log`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.backup(cmd.Context(), args[0]) },
	}
}

// backupJSON is what was copied.
type backupJSON struct {
	Path    string `json:"path"`
	Objects int    `json:"objects"`
	Commits int    `json:"commits"`
	Refs    int    `json:"refs"`
}

func (a *app) backup(ctx context.Context, dest string) error {
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	var beside map[string][]byte
	if root := a.location.root; root != "" {
		if beside, err = readSidecars(root, a.location.files, func(err error) error { return err }); err != nil {
			return err
		}
	}
	step, end := a.progress("backing up")
	health, err := maintain.Backup(ctx, repo, dest, maintain.BackupOptions{Progress: step})
	end()
	switch {
	case errors.Is(err, objects.ErrExists):
		return withHint(err, "DEST must not exist")
	case errors.Is(err, objects.ErrCorrupt):
		return withHint(err, "no backup was made; tract fsck explains the damage, tract recover salvages what is intact")
	case err != nil:
		return err
	}
	if err := writeSidecars(dest, beside); err != nil {
		return err
	}
	return a.emit(backupJSON{dest, health.Objects, health.Commits, health.Refs}, func(p *format.Printer) {
		p.Line(fmt.Sprintf("Copied to %s: %s in %s, %s; the copy is sound", dest, count(health.Objects, "object"), count(health.Commits, "commit"), count(health.Refs, "ref")))
	})
}
