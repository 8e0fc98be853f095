package objects

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tract-vcs/tract/safefile"
)

// Options is how a store is opened.
type Options struct {
	Create   bool          // make the store when there is none
	ReadOnly bool          // never write; Apply gives ErrReadOnly
	Damaged  bool          // open what is there, unchecked and for reading only: for [Maintainer].Audit
	Wait     time.Duration // longest wait for another process; 0 is the engine's own

	Files safefile.Policy // whose files an engine with files accepts; others are ErrUnsafe
}

// Opener opens one kind of store. rest is the URL without its scheme.
type Opener func(ctx context.Context, rest string, o Options) (Store, error)

var (
	engines   = map[string]Opener{"mem": openMemory}
	enginesMu sync.RWMutex
)

func openMemory(context.Context, string, Options) (Store, error) { return Memory(), nil }

// Register makes an engine known by the scheme of its URLs. The empty scheme is
// that of a bare path. It is called from the init function of an engine and
// panics when the scheme is taken.
func Register(scheme string, open Opener) {
	enginesMu.Lock()
	defer enginesMu.Unlock()
	if engines[scheme] != nil {
		panic("objects: two engines for " + scheme + ":")
	}
	engines[scheme] = open
}

// Open opens the store at url: "mem:", "SCHEME:REST" or a bare path. A store
// that is not there is [ErrNotFound], unless o.Create is set.
func Open(ctx context.Context, url string, o Options) (Store, error) {
	scheme, rest, ok := strings.Cut(url, ":")
	if !ok || len(scheme) < 2 || strings.ContainsAny(scheme, `/\.`) {
		scheme, rest = "", url // a path, perhaps with a drive letter
	}
	enginesMu.RLock()
	open := engines[scheme]
	known := slices.Sorted(maps.Keys(engines))
	enginesMu.RUnlock()
	if open == nil {
		return nil, fmt.Errorf("open store: no engine for %q, there are %q", scheme+":", known) // the URL may have a password
	}
	return open(ctx, rest, o)
}
