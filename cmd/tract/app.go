package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/internal/suggest"
	"github.com/tract-vcs/tract/objects"
	_ "github.com/tract-vcs/tract/objects/postgres" // --store postgres://...
)

// app is the state that the commands of one process share. Nothing is opened before it is
// needed.
type app struct {
	in          io.Reader
	out, errOut io.Writer
	screen      screen

	// global flags
	dir, url, branch, from string
	set                    []string
	settingFlags           []settingFlag
	newBranch              bool // --new: create the branch, empty, if it does not exist
	json, verbose          bool

	location     *storeLocation
	loaded       *settings.Values // once settings or open was called
	configured   settings.Values  // loaded, but without the flags of single settings
	repo         *tract.Repo
	openedWith   settings.Values // settings with which repo was opened
	readOnly     bool
	running      bool     // the command runs; false while the shell completes a word
	streaming    bool     // a response is being printed: its last line may be incomplete
	pendingDebug []string // messages to print after the response
	inSession    bool     // hints name the commands of a session
	secretCounts secretCounts
	damage       damageLog // damage found while listing

	signals []os.Signal        // signals that end the command; none: only the context ends it
	cancel  context.CancelFunc // of the command
}

func newApp(in io.Reader, out, errOut io.Writer) *app {
	return &app{in: in, out: out, errOut: errOut, screen: screen{out: out, errOut: errOut}}
}

func (a *app) globalFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&a.dir, "dir", "", "folder of the store (or TRACT_DIR)")
	f.StringVar(&a.url, "store", "", "URL of the store, such as mem: (or TRACT_STORE)")
	f.StringVarP(&a.branch, "branch", "b", "", "branch to use instead of that of HEAD (or TRACT_BRANCH)")
	f.StringVar(&a.from, "from", "", "create the branch of --branch at this revision if it does not exist")
	f.BoolVar(&a.newBranch, "new", false, "create the branch of --branch, empty, if it does not exist")
	f.StringArrayVar(&a.set, "set", nil, "setting for this command, as KEY=VALUE")
	f.BoolVar(&a.json, "json", false, "write JSON")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "print what happens (or TRACT_DEBUG=1)")
	f.StringVar(&a.screen.color, "color", "auto", "use colors: auto, always or never")
	f.BoolVar(&a.screen.noPager, "no-pager", false, "do not use a pager")
	complete := func(name string, c cobra.CompletionFunc) {
		if err := root.RegisterFlagCompletionFunc(name, c); err != nil {
			panic(err) // cannot happen: the flag was just added
		}
	}
	complete("branch", a.completeBranches)
	complete("from", a.completeRevisions)
	complete("color", completeWords("auto", "always", "never"))
	complete("set", a.completeSettings)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if debug, ok := os.LookupEnv("TRACT_DEBUG"); ok && debug != "" && debug != "0" {
			a.verbose = true
		}
		if a.branch == "" {
			a.branch = os.Getenv("TRACT_BRANCH")
		}
		if !slices.Contains([]string{"auto", "always", "never"}, a.screen.color) {
			return usageError("--color %q: want auto, always or never", a.screen.color)
		}
		switch {
		case a.newBranch && a.from != "":
			return usageError("both --new and --from given: use one")
		case a.newBranch && a.branch == "":
			return usageError("--new needs --branch NAME")
		case a.branch != "":
			return checkName("branch", a.branch)
		}
		return nil
	}
}

// settings returns the settings from files, the environment and flags.
func (a *app) settings() (settings.Values, error) {
	if a.loaded != nil {
		return *a.loaded, nil
	}
	p, err := a.findStore()
	if err != nil {
		return settings.Values{}, err
	}
	v, err := settings.Load(settings.Sources{Global: userSettings(), Repo: p.settingsFile(), Lookup: os.LookupEnv})
	if err != nil {
		return settings.Values{}, withSettingHint(err)
	}
	if a.running { // not while the shell completes a word
		a.reportIgnored(p.settingsFile().Path, v.Ignored())
	}
	for _, s := range a.set {
		if v, err = putSetting(v, s); err != nil {
			return settings.Values{}, err
		}
	}
	a.configured = v
	for _, f := range a.settingFlags {
		if *f.value != "" {
			if v, err = v.Put(f.key, *f.value, settings.Origin{Layer: settings.Call, Name: "--" + f.name}); err != nil {
				return settings.Values{}, err
			}
		}
	}
	a.loaded = &v
	a.screen.pager = v.Text("core.pager")
	return v, nil
}

// withSettingHint gives unreadable settings a hint that does not need to read them.
func withSettingHint(err error) error {
	f := classify(err)
	switch f.kind {
	case "failed": // the file cannot be parsed, so that config unset cannot change it either
		f.code, f.kind, f.hint = codeUsage, "setting", "correct it where it is set"
	case "setting":
		f.hint = "correct it where it is set; tract config unset KEY removes it from the file"
	}
	return f
}

// open opens the store, read-only unless write. Writing creates the personal store if it is
// used.
func (a *app) open(ctx context.Context, write bool) (*tract.Repo, error) {
	if a.repo != nil && (!write || !a.readOnly) {
		return a.repo, nil
	}
	p, err := a.findStore()
	if err != nil {
		return nil, err
	}
	v, err := a.settings()
	if err != nil {
		return nil, err
	}
	opts := tract.OpenOptions{
		ReadOnly: !write, Create: write && p.personal, Files: p.files,
		Settings: v.Changed(), Author: author(v), OnSecrets: a.countSecrets,
	}
	if err := a.close(); err != nil {
		return nil, err
	}
	repo, err := tract.Open(ctx, p.url, opts)
	if errors.Is(err, objects.ErrNotFound) {
		return nil, withHint(err, "tract init creates a store here")
	}
	if err != nil {
		return nil, a.withStoreURLHint(err)
	}
	if p.personal {
		a.info("no store in this folder or above; using your personal store in %s", p.root)
	}
	a.repo, a.readOnly, a.openedWith = repo, !write, v
	return repo, nil
}

// settingsChangedSinceOpen returns the current settings that differ from those that the repo was opened
// with.
func (a *app) settingsChangedSinceOpen() (map[string]string, error) {
	v, err := a.settings()
	return v.Over(a.openedWith), err
}

// withStoreURLHint turns the error for a store URL that no engine handles into a usage error.
func (a *app) withStoreURLHint(err error) error {
	f := classify(err)
	if a.url != "" && !isServer(a.url) && f.kind == "failed" {
		f.code, f.kind, f.hint = codeUsage, "usage", "such as --store bolt:PATH, --store postgres://HOST/DATABASE, --store mem: or --dir PATH"
	}
	return f
}

func (a *app) close() error {
	if a.repo == nil {
		return nil
	}
	repo := a.repo
	a.repo = nil
	return repo.Close()
}

// author returns the author of commits: the setting user.name, or the name of the operating
// system's user.
func author(v settings.Values) string {
	for _, name := range []string{v.Text("user.name"), os.Getenv("USER"), os.Getenv("LOGNAME"), os.Getenv("USERNAME")} {
		if name != "" {
			return name
		}
	}
	return ""
}

// branchOfFlagOrHead returns the branch to use: that of --branch, or that of HEAD; empty if HEAD is
// detached.
func (a *app) branchOfFlagOrHead(ctx context.Context) (name string, err error) {
	if a.branch != "" {
		return a.branch, a.checkBranchFlag(ctx)
	}
	h, err := a.head()
	return h.branch, err
}

// checkBranchFlag refuses a missing --branch unless --new or --from creates it. The branch of HEAD
// exists, even without commits.
func (a *app) checkBranchFlag(ctx context.Context) error {
	if a.branch == "" || a.newBranch || a.from != "" {
		return nil
	}
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	if tip, err := repo.Branch(a.branch).Tip(ctx); err != nil || !tip.IsZero() {
		return err
	}
	if h, err := a.head(); err == nil && h.branch == a.branch {
		return nil
	}
	unknown := refs.None(refs.Heads + a.branch)
	search := suggest.NewSearch(a.branch, (len(a.branch)+2)/4)
	for info, err := range repo.Refs(ctx, tract.RefQuery{Limit: 1000}) {
		if err != nil {
			return err
		}
		search.Add(info.Name, info.Name)
	}
	if unknown.Nearest = search.Best(); unknown.Nearest != "" {
		return unknown
	}
	return withHint(unknown, "--new creates it empty, --from REV at a revision; tract branch lists branches")
}

// currentOrNewBranch returns the branch of --branch or HEAD, to commit to. If it does not exist,
// --from creates it at a revision and --new creates it empty.
func (a *app) currentOrNewBranch(ctx context.Context) (*tract.Branch, error) {
	repo, err := a.open(ctx, true)
	if err != nil {
		return nil, err
	}
	name, err := a.branchOfFlagOrHead(ctx)
	if err != nil {
		return nil, err
	}
	if name == "" {
		h, err := a.head()
		if err != nil {
			return nil, err
		}
		err = fmt.Errorf("HEAD is detached at commit %s: nothing can be added", h.commit.Short())
		return nil, withHint(err, "tract switch -c NAME creates a branch here, tract switch NAME moves HEAD to one")
	}
	b := repo.Branch(name)
	if a.from == "" {
		return b, nil
	}
	if tip, err := b.Tip(ctx); err != nil || !tip.IsZero() {
		return b, err
	}
	at, err := a.resolveIgnoringBranchFlag(ctx, a.from)
	if err != nil {
		return nil, err
	}
	return b.Fork(ctx, name, at.String())
}

// newResolver returns a resolver for revs in which HEAD is --branch or HEAD. On a branch without
// commits there is no HEAD.
func (a *app) newResolver(ctx context.Context, revs ...string) (refs.Resolver, error) {
	repo, err := a.open(ctx, false)
	if err != nil {
		return refs.Resolver{}, err
	}
	if err := a.checkBranchFlag(ctx); err != nil {
		return refs.Resolver{}, err
	}
	h := head{branch: a.branch}
	if h.branch == "" {
		if h, err = a.head(); err != nil {
			return refs.Resolver{}, err
		}
	}
	r := refs.Resolver{Store: repo.Store(), Head: h.String(), Now: time.Now}
	if h.branch == "" {
		return r, nil
	}
	tip, err := repo.Branch(h.branch).Tip(ctx)
	if err != nil || !tip.IsZero() {
		return r, err
	}
	r.Head = ""
	if slices.ContainsFunc(revs, usesHead) {
		return r, a.emptyBranchError(ctx, h.branch)
	}
	return r, nil
}

func (a *app) emptyBranchError(ctx context.Context, name string) error {
	return &failure{
		code: codeNotFound, kind: "not_found", cause: fmt.Errorf("branch %q has no commits yet", name),
		hint: a.emptyBranchHint(ctx),
	}
}

// emptyBranchHint returns the next step on a branch without commits. The store is open.
func (a *app) emptyBranchHint(ctx context.Context) string {
	for b, err := range a.repo.Refs(ctx, tract.RefQuery{Newest: true, Limit: 1}) {
		if err == nil {
			return "tract switch " + shellQuote(b.Name) + " moves HEAD to a branch with commits, tract branch lists branches"
		}
	}
	return "tract user TEXT commits a first block, tract chat TEXT asks a model"
}

// usesHead reports whether a revision or a range refers to HEAD.
func usesHead(rev string) bool {
	return strings.Contains(rev, "HEAD") || strings.HasPrefix(rev, "@") || strings.HasPrefix(rev, "..") || strings.HasSuffix(rev, "..")
}

// resolve returns the commit of a revision.
func (a *app) resolve(ctx context.Context, rev string) (objects.ID, error) {
	r, err := a.newResolver(ctx, rev)
	if err != nil {
		return objects.ID{}, err
	}
	return r.Resolve(ctx, rev)
}

// resolveIgnoringBranchFlag is resolve for --from, where HEAD is not the branch about to be
// created.
func (a *app) resolveIgnoringBranchFlag(ctx context.Context, rev string) (objects.ID, error) {
	branch := a.branch
	a.branch = ""
	defer func() { a.branch = branch }()
	return a.resolve(ctx, rev)
}

// resolveRange resolves a revision or a range and returns it with whole ids: ID or ID..ID.
func (a *app) resolveRange(ctx context.Context, rev string) (rangeOfIDs string, err error) {
	r, err := a.newResolver(ctx, rev)
	if err != nil {
		return "", err
	}
	from, to, err := r.Range(ctx, rev)
	if err != nil {
		return "", err
	}
	if from.IsZero() {
		return to.String(), nil
	}
	return from.String() + ".." + to.String(), nil
}

// revOrHead returns the only argument of a command, or HEAD.
func revOrHead(args []string) string {
	if len(args) == 0 {
		return "HEAD"
	}
	return args[0]
}

// atRevision returns the run function of a command about one revision, by default HEAD.
func (a *app) atRevision(run func(ctx context.Context, id objects.ID) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		id, err := a.resolve(cmd.Context(), revOrHead(args))
		if err != nil {
			return err
		}
		return run(cmd.Context(), id)
	}
}

// lowerGCPercent makes the garbage collector run more often until restore is called. Commands that
// read a whole store hold large tables, and by default the garbage may grow as large as the live
// memory.
func lowerGCPercent() (restore func()) {
	old := debug.SetGCPercent(20)
	return func() { debug.SetGCPercent(old) }
}
