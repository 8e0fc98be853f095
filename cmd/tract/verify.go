package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
)

func newVerify(a *app) *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use: "verify [REV]", Short: "Rebuild past requests and compare their hashes",
		Long: `Rebuild the request of every response in a history from the data that was stored with it,
and compare the hash of the body with the stored hash. The body of a recorded request is
stored itself. The result is: same; as sent, for a stored body; differs; built by an older
encoder; purged since, by tract purge; or not reproducible, with the reason.
The exit code is 1 if one differs.`,
		Example: `  tract verify
  tract verify main~20
  tract verify --all --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.verify(cmd.Context(), all, args) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "verify the responses of all branches, tags and rescued responses")
	return cmd
}

type verifyJSON struct {
	Checked    int            `json:"checked"`
	Same       int            `json:"same"`
	AsSent     int            `json:"as_sent,omitempty"` // requests of other programs, whose bodies are stored
	Differs    int            `json:"differs"`
	Purged     int            `json:"purged"`
	Older      int            `json:"older_encoder"`
	Unprovable int            `json:"not_reproducible"`
	Commits    int            `json:"commits"` // that were looked at
	Manifests  []verifiedJSON `json:"manifests"`
}

type verifiedJSON struct {
	Manifest objects.ID      `json:"manifest"`
	Commit   objects.ID      `json:"commit"`
	Outcome  inspect.Outcome `json:"verdict"`
	Why      string          `json:"why,omitempty"`
}

func (a *app) verify(ctx context.Context, all bool, args []string) error {
	if all && len(args) > 0 {
		return usageError("both --all and a revision given: use one")
	}
	v, err := a.verifyManifests(ctx, all, revOrHead(args))
	if err != nil {
		return err
	}
	if a.json {
		err = format.Encode(a.out, v)
	} else {
		err = a.printVerified(v)
	}
	if err == nil && v.Differs > 0 {
		return negativeAnswer()
	}
	return err
}

// verifyManifests verifies the manifests of the history of rev, or of all histories.
func (a *app) verifyManifests(ctx context.Context, all bool, rev string) (*verifyJSON, error) {
	repo, err := a.open(ctx, false)
	if err != nil {
		return nil, err
	}
	v := &verifyJSON{Manifests: []verifiedJSON{}}
	counts := map[inspect.Outcome]*int{
		inspect.Same: &v.Same, inspect.AsSent: &v.AsSent, inspect.Differs: &v.Differs,
		inspect.Purged: &v.Purged, inspect.OlderEncoder: &v.Older, inspect.NotReproducible: &v.Unprovable,
	}
	total := 0
	o := inspect.VerifyOptions{Progress: func(commits, requests int) { v.Commits, total = commits, requests }}
	if !all {
		id, err := a.resolve(ctx, rev)
		if err != nil {
			return nil, err
		}
		o.Revs = []string{id.String()}
	}
	step, end := a.startProgress("verifying")
	defer end()
	for x, err := range inspect.Verify(ctx, repo, manifestTargetIfKnown, o) {
		if err != nil {
			return nil, err
		}
		if v.Checked++; step != nil {
			step(int64(v.Checked), int64(total))
		}
		*counts[x.Outcome]++
		v.Manifests = append(v.Manifests, verifiedJSON{x.ID, x.Commit, x.Outcome, x.Why})
	}
	return v, nil
}

func (a *app) printVerified(v *verifyJSON) error {
	p := a.printer()
	var rows [][]string
	for _, m := range v.Manifests {
		if (m.Outcome == inspect.Same || m.Outcome == inspect.AsSent) && !a.verbose {
			continue
		}
		verdict := string(m.Outcome)
		if m.Outcome == inspect.Differs {
			verdict = p.Warn(verdict)
		}
		rows = append(rows, []string{m.Commit.Short(), verdict, m.Why})
	}
	p.Table(rows)
	purged := ""
	if v.Purged > 0 {
		purged = fmt.Sprintf("%d purged, ", v.Purged)
	}
	sent := ""
	if v.AsSent > 0 {
		sent = fmt.Sprintf("%d as sent, ", v.AsSent)
	}
	p.Text(fmt.Sprintf("%s: %d same, %s%d differ, %s%d by an older encoder, %d not reproducible\n",
		count(v.Checked, "request"), v.Same, sent, v.Differs, purged, v.Older, v.Unprovable))
	return p.Err()
}
