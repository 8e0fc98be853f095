// Package tract stores the context of language models: every block of a conversation is an
// immutable commit. What a model saw, reasoned and answered at any moment can be looked up,
// compared, forked and asked again.
//
// For most uses:
//
//	repo, err := tract.Open(ctx, ".tract", tract.OpenOptions{Create: true})
//	main := repo.Branch("main")
//	_, err = main.Append(ctx, []content.Block{content.System("You are brief.")}, tract.AppendOptions{})
//	response, err := main.Ask(ctx, client, "Why is the sky blue?", tract.AskOptions{})
//
// A [Repo] reads histories; a [Branch] adds to one and asks models. Any number of
// goroutines may use both, and any number of processes may use a store. There is no current
// branch here: HEAD belongs to a working folder, and in the revisions given to a Branch it
// means that branch.
//
// What is promised: a response and the reasoning before it are written in one transaction,
// or not at all. A response that cannot be committed to its branch, because the branch
// moved or the stream broke, is kept under a rescue ref that the error names; if even that
// write fails, the response is on an *[UnsavedError]. No transaction is open during network
// calls. This package removes refs but never commits or content; package maintain does.
//
// Options are structs whose zero value is the default. The settings in them are those of
// "tract config", by name.
//
// The package reads no environment, no home directory and no configuration, and has no
// global state.
package tract

import (
	"context"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/objects"
	_ "github.com/tract-vcs/tract/objects/bolt" // the embedded engine
	"github.com/tract-vcs/tract/safefile"
)

// Repo is an open store. Its methods read histories and manage refs.
type Repo struct {
	store     objects.Store
	settings  settings.Values
	author    string
	clock     func() time.Time
	onSecrets func([]Secret) // secrets; may be nil
}

// Open opens the store at url: a folder such as ".tract", or "mem:", a new store in memory.
// When there is no store, the error is an [objects.ErrNotFound], unless Create is set.
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
	return &Repo{store: store, settings: v, author: o.Author, clock: o.Now, onSecrets: o.OnSecrets}, nil
}

// Close waits for running writes and closes the store. Later calls give
// [objects.ErrClosed].
func (r *Repo) Close() error { return r.store.Close() }

// Store returns the store of objects and refs. It is meant for packages that build on this
// one, such as maintain, and not for programs.
func (r *Repo) Store() objects.Store { return r.store }

// OpenOptions are the options of [Open].
type OpenOptions struct {
	Create   bool              // make the store when there is none
	ReadOnly bool              // never write to the store
	Wait     time.Duration     // longest wait for another process that holds the store; 0: the default of the engine
	Files    safefile.Policy   // whose files are accepted in a folder that holds a store; zero: see [objects.ErrUnsafe]
	Settings map[string]string // of all calls, unless their options set them, by name; a missing setting has its default
	Author   string            // of commits and of entries in the ref log; empty: none
	Now      func() time.Time  // the time of commits, for tests and imports; nil: time.Now

	// OnSecrets is called with the secrets that were found in what is about to be
	// committed, masked or not; with the setting secrets.mask=off there is no search for
	// secrets. It is called by the goroutine that commits, and again when a write is
	// retried. May be nil.
	OnSecrets func([]Secret)
}

// resolverWithoutHead returns a resolver of revisions without a HEAD.
func (r *Repo) resolverWithoutHead() refs.Resolver {
	return refs.Resolver{Store: r.store, Now: r.clock}
}

// header reads the header of a commit; it returns nil for the zero id.
func (r *Repo) header(ctx context.Context, id objects.ID) (*commit.Commit, error) {
	if id.IsZero() {
		return nil, nil
	}
	return commit.Read(ctx, r.store, id)
}
