package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
)

var _ = register(newStatus)

func newStatus(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say where HEAD is and how large the prompt is", GroupID: groupLook,
		Long: `Say where HEAD is, how many tokens its prompt has by estimate, which tool calls
wait for a result, and which replies could not land.`,
		Example: "  tract status\n  tract status --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context()) },
	}
}

type statusJSON struct {
	Head    objects.ID     `json:"head,omitzero"`
	Branch  string         `json:"branch,omitempty"`
	Commits uint64         `json:"commits"`
	Tokens  compile.Tokens `json:"tokens"`
	Pending []pendingJSON  `json:"pending,omitempty"`
	Rescued []string       `json:"rescued,omitempty"`
	Store   storeJSON      `json:"store"`
	Budget  budgetJSON     `json:"budget"`
}

type pendingJSON struct {
	ID     string     `json:"id"`
	Name   string     `json:"name"`
	Commit objects.ID `json:"commit"`
}

type storeJSON struct {
	Engine string `json:"engine"`
	Path   string `json:"path,omitempty"`
	Bytes  int64  `json:"bytes"`
}

// budgetJSON is reasoning tokens of the session.
type budgetJSON struct {
	Used  int64 `json:"used"`
	Limit int   `json:"limit,omitempty"`
	Warn  bool  `json:"warn,omitempty"`
}

func (a *app) status(ctx context.Context) error {
	s, err := a.findStatus(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return format.Encode(a.out, s)
	}
	p := a.printer()
	where := "On branch " + s.Branch
	switch {
	case s.Branch == "":
		where = "HEAD is at commit " + s.Head.Short() + ", on no branch"
	case s.Head.IsZero():
		where += ", no commits yet"
	default:
		where += " at " + s.Head.Short() + ", " + count(s.Commits, "commit")
	}
	p.Text(where + "\n")
	if !s.Head.IsZero() {
		p.Tokens(s.Tokens)
	}
	for _, c := range s.Pending {
		p.Text("Waits for a result: " + c.Name + " (" + c.ID + "); tract tool-result " + c.ID + " -F -\n")
	}
	for _, name := range s.Rescued {
		p.Text("A reply could not land: tract rescue show " + name + "\n")
	}
	if s.Budget.Limit > 0 {
		p.Text("Reasoning: " + strconv.FormatInt(s.Budget.Used, 10) + " of " + strconv.Itoa(s.Budget.Limit) + " tokens\n")
	}
	p.Text("Store: " + s.Store.Engine + " " + s.Store.Path + ", " + strconv.FormatInt((s.Store.Bytes+1023)/1024, 10) + " KiB\n")
	if s.Head.IsZero() {
		a.note("tract user TEXT commits a first block, tract chat TEXT asks a model")
	}
	return p.Err()
}

func count(n uint64, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.FormatUint(n, 10) + " " + what
}

func (a *app) findStatus(ctx context.Context) (*statusJSON, error) {
	repo, err := a.open(ctx, false)
	if err != nil {
		return nil, err
	}
	s := &statusJSON{Store: a.storeStatus()}
	if s.Branch, err = a.branchName(); err != nil {
		return nil, err
	}
	if s.Branch != "" {
		s.Head, err = repo.Branch(s.Branch).Tip(ctx)
	} else {
		s.Head, err = a.resolve(ctx, "HEAD")
	}
	if err != nil {
		return nil, err
	}
	rescues, err := repo.Rescues(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range rescues {
		s.Rescued = append(s.Rescued, r.Name)
	}
	if s.Head.IsZero() {
		return s, nil
	}
	p, err := repo.Compile(ctx, s.Head.String())
	if err != nil {
		return nil, err
	}
	s.Tokens, s.Commits = p.Tokens, uint64(len(p.Entries))
	for _, c := range p.Pending {
		s.Pending = append(s.Pending, pendingJSON{ID: c.Call.CallID, Name: c.Call.Name, Commit: c.Commit})
	}
	return s, a.budgetStatus(ctx, s, p)
}

// budgetStatus counts the reasoning tokens that the session has used: each reply
// once, and only where it was committed on this branch.
func (a *app) budgetStatus(ctx context.Context, s *statusJSON, p *compile.Prompt) error {
	v, err := a.settings()
	if err != nil {
		return err
	}
	s.Budget.Limit = v.Int("reasoning.budget")
	seen := map[objects.ID]bool{}
	for _, e := range p.Entries {
		id := e.Commit.Origin
		if id.IsZero() || seen[id] {
			continue
		}
		seen[id] = true
		origin, err := commit.ReadOrigin(ctx, a.repo.Store(), id)
		if err != nil {
			return err
		}
		if origin.Session == s.Branch {
			s.Budget.Used += origin.Usage.Reasoning
		}
	}
	if part := v.Float("reasoning.budget_warn"); part != nil && s.Budget.Limit > 0 {
		s.Budget.Warn = float64(s.Budget.Used) >= *part*float64(s.Budget.Limit)
	}
	return nil
}

// storeStatus is what the place says of the store.
func (a *app) storeStatus() storeJSON {
	s := storeJSON{Engine: "bolt", Path: a.place.root}
	if scheme, _, ok := strings.Cut(a.place.url, ":"); ok && a.place.root == "" {
		s.Engine = scheme
	}
	if s.Path == "" {
		return s
	}
	_ = filepath.WalkDir(s.Path, func(_ string, d fs.DirEntry, err error) error { // what cannot be read is not counted
		if err == nil && d.Type().IsRegular() {
			if info, err := os.Stat(filepath.Join(s.Path, d.Name())); err == nil {
				s.Bytes += info.Size()
			}
		}
		return nil
	})
	return s
}
