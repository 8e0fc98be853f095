// Package objectstest holds store engines to the promises written at the
// interfaces of package objects, and makes stores that fail when told.
//
// An engine calls [Run] from one test of its own:
//
//	func TestPromises(t *testing.T) {
//		objectstest.Run(t, objectstest.Engine{Open: open, Reopen: reopen})
//	}
//
// Run it with -race too: half of the promises are about concurrent calls.
// What only one engine can get wrong (damage, locks, crashes) is tested beside
// that engine. Whoever stands on a store tests what happens when it fails with
// [Faulty] around objects.Memory().
package objectstest

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// Engine is how the suite gets at a store.
type Engine struct {
	// Open gives a fresh, empty store. The suite closes it.
	Open func(t *testing.T) objects.Store

	// Reopen opens what a store from Open, closed by now, has left behind. It is
	// nil for an engine that leaves nothing.
	Reopen func(t *testing.T, closed objects.Store) objects.Store

	// OpenCopy opens the copy that objects.Maintainer made in a folder. It is nil for an
	// engine that makes none.
	OpenCopy func(t *testing.T, dir string) objects.Store
}

// Run checks every promise, each in a subtest of its own on a store of its own.
func Run(t *testing.T, e Engine) {
	for _, group := range [][]promise{gets, chains, bulks, applies, updates, refs, logs, lives, watches, purges, maintains} {
		for _, p := range group {
			t.Run(p.name, func(t *testing.T) { p.check(t, open(t, e)) })
		}
	}
	if e.OpenCopy != nil {
		t.Run("Maintain/a copy has everything", func(t *testing.T) { checkCopy(t, e) })
	}
	if e.Reopen != nil {
		t.Run("Reopen/everything acknowledged is there", func(t *testing.T) { checkReopen(t, e) })
	}
}

type promise struct {
	name  string
	check func(t *testing.T, s objects.Store)
}

func open(t *testing.T, e Engine) objects.Store {
	t.Helper()
	s := e.Open(t)
	t.Cleanup(func() { _ = s.Close() }) // a test may have closed it
	return s
}

// branch is the ref that most tests move.
const branch = "refs/heads/main"

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func note(command string) objects.Note {
	return objects.Note{Time: noon, Author: "suite", Command: command}
}

func content(text string) objects.Object {
	return objects.New(objects.KindContent, nil, nil, []byte(text))
}

func commit(parent objects.ID, links ...objects.ID) objects.Object {
	var parents []objects.ID
	if !parent.IsZero() {
		parents = []objects.ID{parent}
	}
	return objects.New(objects.KindCommit, parents, links, nil)
}

// history is a line of commits, tip first, each with the content it names.
type history struct{ commits, contents []objects.Object }

func (h history) tip() objects.ID { return h.commits[0].ID }

func (h history) all() []objects.Object {
	return append(h.contents[:len(h.contents):len(h.contents)], h.commits...)
}

// grow makes n commits above parent, whose contents are name and a number.
func grow(parent objects.ID, name string, n int) history {
	h := history{commits: make([]objects.Object, n), contents: make([]objects.Object, n)}
	for i := n - 1; i >= 0; i-- {
		h.contents[i] = content(fmt.Sprintf("%s %d", name, i))
		h.commits[i] = commit(parent, h.contents[i].ID)
		parent = h.commits[i].ID
	}
	return h
}

func ids(objs []objects.Object) []objects.ID {
	var ids []objects.ID
	for _, o := range objs {
		ids = append(ids, o.ID)
	}
	return ids
}

func put(t *testing.T, s objects.Store, objs ...objects.Object) {
	t.Helper()
	apply(t, s, objects.Batch{Put: objs})
}

func apply(t *testing.T, s objects.Store, b objects.Batch) {
	t.Helper()
	if err := s.Apply(t.Context(), b); err != nil {
		t.Fatalf("apply: %v", err)
	}
}

// move returns a batch that moves one ref and puts the object it moves to.
func move(name string, from objects.ID, to objects.Object) objects.Batch {
	b := objects.Batch{Refs: []objects.RefUpdate{{Name: name, Old: from, New: to.ID}}, Note: note("move")}
	if !to.ID.IsZero() {
		b.Put = []objects.Object{to}
	}
	return b
}

func target(t *testing.T, s objects.Store, name string) objects.ID {
	t.Helper()
	ref, err := objects.ReadRef(t.Context(), s, name)
	if err != nil {
		t.Fatalf("read ref %s: %v", name, err)
	}
	return ref.Target
}

// collect reads a sequence to its end: what it yielded, and the error it ended with.
func collect(seq iter.Seq2[objects.Object, error]) (objs []objects.Object, err error) {
	for o, e := range seq {
		if err != nil {
			return objs, fmt.Errorf("the sequence goes on after: %w", err)
		}
		if err = e; err == nil {
			objs = append(objs, o)
		}
	}
	return objs, err
}

func wantIDs(t *testing.T, got, want []objects.ID) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("%d ids, want %d: %s is not there", len(got), len(want), want[i].Short())
		case i >= len(want):
			t.Fatalf("%d ids, want %d: %s is too many", len(got), len(want), got[i].Short())
		case got[i] != want[i]:
			t.Fatalf("id %d is %s, want %s", i, got[i].Short(), want[i].Short())
		}
	}
}

func wantObjects(t *testing.T, got, want []objects.Object) {
	t.Helper()
	wantIDs(t, ids(got), ids(want))
	for i, o := range got {
		if o.Kind != want[i].Kind || !bytes.Equal(o.Data, want[i].Data) {
			t.Fatalf("object %s is not what was put", o.ID.Short())
		}
		wantIDs(t, o.Parents, want[i].Parents)
		wantIDs(t, o.Links, want[i].Links)
	}
}

// soon returns a context for what must end by itself; a hang is then an error.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
