// Package tract keeps the context of language models: every block of a
// conversation is an immutable commit, and what a model saw, thought and said at
// any moment can be looked up, compared, forked and asked again.
//
// For most uses:
//
//	repo, err := tract.Open(ctx, ".tract", tract.OpenOptions{Create: true})
//	main := repo.Branch("main")
//	_, err = main.Append(ctx, []content.Block{content.System("You are brief.")}, tract.AppendOptions{})
//	reply, err := main.Ask(ctx, client, "Why is the sky blue?", tract.AskOptions{})
//
// A [Repo] looks at histories; a [Branch] adds to one and asks models. Both may
// be used by any number of goroutines, and a store by any number of processes.
// There is no current branch here: HEAD belongs to a working folder, and in the
// revisions given to a Branch it means that branch.
//
// What is promised: a response and the reasoning before it are written in one transaction,
// or not at all. A response that cannot be committed to its branch, because the branch moved
// or the stream broke, is kept under a rescue ref that the error names; if even that write
// fails, the response is on an *[UnsavedError]. No transaction is open during network calls.
// This package removes refs but never commits or content; package maintain does.
//
// Options are structs whose zero value is the default. Settings in them are those of
// "tract config", by name.
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
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/objects"
	_ "github.com/tract-vcs/tract/objects/bolt" // the embedded engine
	"github.com/tract-vcs/tract/safefile"
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

// Open opens the store at url: a folder such as ".tract", or "mem:", a new store in memory.
// A store
// that is not there is an [objects.ErrNotFound], unless Create is given.
func Open(ctx context.Context, url string, o OpenOptions) (*Repo, error) {
	v, err := settings.Values{}.WithAll(o.Settings)
	if err != nil {
		return nil, err
	}
	store, err := objects.Open(ctx, url, objects.Options{Create: o.Create, ReadOnly: o.ReadOnly, Wait: o.Wait, Files: o.Files})
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Repo{store: store, settings: v, author: o.Author, clock: o.Now, found: o.OnSecrets}, nil
}

// Close waits for running writes and closes the store. Later calls give
// [objects.ErrClosed].
func (r *Repo) Close() error { return r.store.Close() }

// Store is the objects and refs below the repo.
func (r *Repo) Store() objects.Store { return r.store }

// OpenOptions say how a store is opened.
type OpenOptions struct {
	Create   bool              // make the store when there is none
	ReadOnly bool              // never write to the store
	Wait     time.Duration     // longest wait for another process that holds the store; 0: the default of the engine
	Files    safefile.Policy   // whose files are accepted in a folder that holds a store; zero: see [objects.ErrUnsafe]
	Settings map[string]string // for every call that does not say otherwise, by name; a setting without an entry has its default
	Author   string            // of commits and of entries in the ref log; empty: none
	Now      func() time.Time  // the time of commits, for tests and imports; nil: time.Now

	// OnSecrets is told of every secret that was found in what is about to be committed,
	// masked or not; with the setting secrets.mask=off nothing is looked for. It is called
	// by the goroutine that commits, and again when a write is done again. May be nil.
	OnSecrets func([]Secret)
}

// Branch is one conversation. It need not exist yet: the first commit makes it.
type Branch struct {
	repo *Repo
	name string
	full string // of the ref

	mu     sync.Mutex
	unkept map[objects.ID][]content.Block // thoughts that were not committed, by the commit they come before
}

// Branch returns the branch of a name. It does no I/O; a name that is not valid is an error
// of the first call on the branch. Two calls return two Branches, which do not share the
// reasoning that [Branch.Generate] keeps in memory.
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
	kept.Block, kept.Origin, kept.Label, kept.Tombstone = nil, nil, commit.Label{}, nil
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
