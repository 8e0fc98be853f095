// Package tract keeps the context of language models: every block of a
// conversation is an immutable commit, and what a model saw, thought and said at
// any moment can be looked up, compared, forked and asked again.
//
// For most uses:
//
//	repo, err := tract.Open(ctx, ".tract", tract.Create())
//	main := repo.Branch("main")
//	_, err = main.System(ctx, "You are brief.")
//	reply, err := main.Chat(ctx, client, "Why is the sky blue?")
//
// A [Repo] looks at histories; a [Branch] adds to one and asks models. Both may
// be used by any number of goroutines, and a store by any number of processes.
// There is no current branch here: HEAD belongs to a working folder, and in the
// revisions given to a Branch it means that branch.
//
// What is promised: a reply and the thoughts before it are written in one
// transaction, or not at all; a reply that cannot land where it belongs, because
// the branch moved or the stream broke, is kept under a rescue ref and named in
// the error; no transaction is open while the network works; nothing is deleted.
//
// The package reads no environment, no home directory and no configuration, and
// has no state of its own.
package tract

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	_ "github.com/tract-vcs/tract/objects/bolt" // the embedded engine
	"github.com/tract-vcs/tract/refs"
	"github.com/tract-vcs/tract/safefile"
	"github.com/tract-vcs/tract/settings"
)

// Repo is a store of histories.
type Repo struct {
	store    objects.Store
	settings settings.Values
	author   string
	clock    func() time.Time
	found    func([]Secret) // secrets; may be nil
	headers  headers
}

// Open opens the store at url: a folder such as ".tract", or "mem:". A store
// that is not there is an [objects.ErrNotFound], unless Create is given.
func Open(ctx context.Context, url string, opts ...OpenOption) (*Repo, error) {
	o, err := openingOf(opts)
	if err != nil {
		return nil, err
	}
	store, err := objects.Open(ctx, url, o.Options)
	if err != nil {
		return nil, err
	}
	return &Repo{store: store, settings: o.settings, author: o.author, clock: o.clock, found: o.found}, nil
}

// Close waits for running writes and closes the store. Later calls give
// [objects.ErrClosed].
func (r *Repo) Close() error { return r.store.Close() }

// Store is the objects and refs below the repo.
func (r *Repo) Store() objects.Store { return r.store }

// opening is what the options of Open say.
type opening struct {
	objects.Options
	settings settings.Values
	author   string
	clock    func() time.Time
	found    func([]Secret)
}

func openingOf(opts []OpenOption) (*opening, error) {
	o := &opening{clock: time.Now}
	for _, opt := range opts {
		if err := opt(o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// OpenOption changes how a store is opened.
type OpenOption func(*opening) error

// Create makes the store when there is none.
func Create() OpenOption { return func(o *opening) error { o.Create = true; return nil } }

// ReadOnly never writes to the store.
func ReadOnly() OpenOption { return func(o *opening) error { o.ReadOnly = true; return nil } }

// Files says whose files are accepted, in a folder that holds a store. Without it, files
// of another user than that of this process, and files that another user can write, are
// [objects.ErrUnsafe].
func Files(p safefile.Policy) OpenOption {
	return func(o *opening) error { o.Files = p; return nil }
}

// Wait is the longest wait for another process that holds the store.
func Wait(d time.Duration) OpenOption { return func(o *opening) error { o.Wait = d; return nil } }

// As names the author of commits that do not say their own.
func As(author string) OpenOption { return func(o *opening) error { o.author = author; return nil } }

// Clock gives the time of commits, for tests and imports.
func Clock(now func() time.Time) OpenOption {
	return func(o *opening) error { o.clock = now; return nil }
}

// Defaults are the settings that hold where a call does not say otherwise.
func Defaults(v settings.Values) OpenOption {
	return func(o *opening) error { o.settings = v; return nil }
}

// CommitReasoning says whether thoughts are committed, where a call does not say
// otherwise. They are unless told.
func CommitReasoning(yes bool) OpenOption {
	return func(o *opening) (err error) {
		o.settings, err = o.settings.With("reasoning.commit", fmt.Sprint(yes))
		return err
	}
}

// Branch is one conversation. It need not exist yet: the first commit makes it.
type Branch struct {
	repo *Repo
	name string
	full string // of the ref

	mu     sync.Mutex
	unkept map[objects.ID][]content.Block // thoughts that were not committed, by the commit they come before
}

// Branch gives the branch with a name. It does no I/O.
func (r *Repo) Branch(name string) *Branch {
	full := refs.Heads + name
	return &Branch{repo: r, full: full, name: full[len(refs.Heads):]}
}

// Name is the name of the branch.
func (b *Branch) Name() string { return b.name }

func (b *Branch) ref() string { return b.full }

// Tip is the last commit of the branch, zero when it has none.
func (b *Branch) Tip(ctx context.Context) (objects.ID, error) {
	if err := refs.Check(b.name); err != nil {
		return objects.ID{}, fmt.Errorf("branch: %w", err)
	}
	ref, err := objects.ReadRef(ctx, b.repo.store, b.ref())
	return ref.Target, err
}

// resolver turns revisions into ids; HEAD is the branch.
func (b *Branch) resolver() refs.Resolver {
	return refs.Resolver{Store: b.repo.store, Head: b.name, Now: b.repo.clock}
}

func (r *Repo) resolver() refs.Resolver { return refs.Resolver{Store: r.store, Now: r.clock} }

// headers remembers the headers of commits just written, which are the parents
// of those written next.
type headers struct {
	mu   sync.Mutex
	byID map[objects.ID]*commit.Commit
}

// most headers that are remembered.
const maxHeaders = 4096

func (h *headers) put(c *commit.Commit) {
	kept := *c
	kept.Block, kept.From, kept.Words, kept.Erased = nil, nil, commit.Label{}, nil
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byID == nil {
		h.byID = map[objects.ID]*commit.Commit{}
	}
	if len(h.byID) >= maxHeaders {
		clear(h.byID)
	}
	h.byID[c.ID] = &kept
	for _, id := range c.Parents { // from now on it is written upon the new one
		delete(h.byID, id)
	}
}

// header reads the header of a commit; nil for the zero id.
func (r *Repo) header(ctx context.Context, id objects.ID) (*commit.Commit, error) {
	if id.IsZero() {
		return nil, nil
	}
	r.headers.mu.Lock()
	c := r.headers.byID[id]
	r.headers.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := commit.Read(ctx, r.store, id)
	if err != nil {
		return nil, err
	}
	r.headers.put(c)
	return c, nil
}

// errNoCommits says that a branch has nothing to work on.
func (b *Branch) errNoCommits(operation string) error {
	return fmt.Errorf("%s: %w", operation, &refs.UnknownError{Rev: b.name, Why: "the branch has no commits yet"})
}
