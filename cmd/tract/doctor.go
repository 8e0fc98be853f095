package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
)

func newDoctor(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check the store, the settings and the terminal",
		Long: `Check what tract needs: the store and its permissions, HEAD, every branch, the settings,
the keys in the environment (never their values), and the terminal. Nothing is changed.
The exit code is 1 if something is wrong.`,
		Example: "  tract doctor\n  tract doctor --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
}

// doctorCheckJSON is the result of one check.
type doctorCheckJSON struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
	Hint   string `json:"hint,omitempty"`
}

func (a *app) doctor(ctx context.Context) error {
	list := []doctorCheckJSON{
		{Name: "tract", OK: true, Detail: version + ", " + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH},
	}
	for _, check := range []struct {
		name string
		find func(context.Context) (string, error)
	}{
		{"settings", a.checkSettings},
		{"store", a.checkStore},
		{"permissions", a.checkPermissions},
		{"leftovers", a.checkLeftovers},
		{"HEAD", a.checkHead},
		{"branches", a.checkTipsReadable},
		{"provider", a.checkProvider},
		{"keys", checkKeys},
		{"terminal", a.checkTerminal},
	} {
		f := doctorCheckJSON{Name: check.name}
		detail, err := check.find(ctx)
		if f.OK, f.Detail = err == nil, detail; err != nil {
			what := classify(err)
			f.Detail, f.Hint = what.Error(), what.hint
		}
		list = append(list, f)
	}
	bad := false
	var rows [][]string
	for _, f := range list {
		mark := "ok"
		if !f.OK {
			mark, bad = "WRONG", true
		}
		detail := f.Detail
		if f.Hint != "" {
			detail += " (hint: " + f.Hint + ")"
		}
		rows = append(rows, []string{mark, f.Name, detail})
	}
	if err := a.emitRows(list, rows); err != nil || !bad {
		return err
	}
	return negativeAnswer()
}

func (a *app) checkSettings(context.Context) (string, error) {
	v, err := a.settings()
	if err != nil {
		return "", err
	}
	changed := count(len(v.Changed()), "setting") + " changed"
	if n := len(v.Ignored()); n > 0 {
		changed += fmt.Sprintf(", %d ignored: %s is not trusted", n, a.location.settingsFile().Path)
	}
	return changed, nil
}

func (a *app) checkStore(ctx context.Context) (string, error) {
	if _, err := a.open(ctx, false); err != nil {
		return "", err
	}
	s := a.storeStatus(ctx)
	return fmt.Sprintf("%s %s, %s", s.Engine, firstNonEmpty(s.Path, a.location.displayName()), kib(s.Bytes)), nil
}

func (a *app) checkPermissions(context.Context) (string, error) {
	p, err := a.findStore()
	if err != nil || p.root == "" {
		return "nothing to check", err
	}
	info, err := os.Stat(p.root)
	if err != nil {
		return "", err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return "", withHint(fmt.Errorf("other users can read %s (mode %04o)", p.root, mode), "chmod 700 %s", shellQuote(p.root))
	}
	f, err := os.CreateTemp(p.root, "doctor-")
	if err != nil {
		return "private, and read-only", nil //nolint:nilerr // a store may be read-only
	}
	err = f.Close()
	if removeErr := os.Remove(filepath.Clean(f.Name())); err == nil {
		err = removeErr
	}
	return "private", err
}

func (a *app) checkHead(ctx context.Context) (string, error) {
	h, err := a.head()
	if err != nil || h.branch != "" {
		return "on branch " + h.branch, err
	}
	_, err = a.resolve(ctx, h.commit.String())
	return "at commit " + h.commit.Short(), err
}

// checkLeftovers names the temporary files that killed processes have left.
func (a *app) checkLeftovers(ctx context.Context) (string, error) {
	repo, err := a.open(ctx, false)
	if err != nil {
		return "", err
	}
	names, err := maintain.Leftovers(ctx, repo)
	if err != nil || len(names) == 0 {
		return "none", err
	}
	return strings.Join(names, ", ") + ": left by a killed process; the next write, backup or recover removes it", nil
}

// checkTipsReadable reads the tip of every branch, and returns how many branches there are.
func (a *app) checkTipsReadable(ctx context.Context) (branchCount string, err error) {
	repo, err := a.open(ctx, false)
	if err != nil {
		return "", err
	}
	n := uint64(0)
	for info, err := range repo.Refs(ctx, tract.RefQuery{}) {
		if err != nil {
			return "", err
		}
		if _, err := objects.Read(ctx, repo.Store(), info.Tip); err != nil {
			return "", fmt.Errorf("branch %s: %w", info.Name, err)
		}
		n++
	}
	return count(n, "branch"), nil
}

func (a *app) checkProvider(context.Context) (string, error) {
	v, err := a.settings()
	if err != nil {
		return "", err
	}
	if v.Text("provider") == "" && v.Text("base_url") == "" {
		return "not set; --provider names one", nil
	}
	client, err := a.client()
	if err != nil {
		return "", err
	}
	at := client.Address()
	return fmt.Sprintf("%s, dialect %s, model %s, host %s", at.Provider, at.Dialect, firstNonEmpty(at.Model, "not set"), firstNonEmpty(at.Endpoint, "none")), nil
}

// checkKeys lists the variables that hold a key, not what they hold.
func checkKeys(context.Context) (string, error) {
	found, _ := keysInEnvironment()
	return firstNonEmpty(strings.Join(found, ", "), "none in the environment"), nil
}

func (a *app) checkTerminal(context.Context) (string, error) {
	o := a.screen.optionsWithShadedReasoning(a.out)
	background := map[format.Background]string{format.Unknown: "unknown", format.Dark: "dark", format.Light: "light"}[o.Background]
	return fmt.Sprintf("terminal %t, width %d, colour %t, background %s, pager %q", isTerminal(a.out), o.Width, o.Color, background, a.screen.pagerCommand()), nil
}
