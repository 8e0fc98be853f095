package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// refCheck collects the refs, their log, and the two lists derived from them.
type refCheck struct {
	refs       map[string][]byte
	recent     map[string]bool
	moves      tally // of the log by name
	movesInLog tally // what the log by name must have

	entries   map[uint64]objects.LogEntry // of a deep audit, until all are found
	salvaged  map[string]objects.Ref      // refs that salvage has found
	lastSeq   uint64                      // Seq of the previous entry
	broken    map[string]bool             // refs whose chain of entries is broken
	refsInLog map[string]refRecord        // refs according to the log; a zero target: deleted
}

func newRefCheck() refCheck {
	return refCheck{
		refs: map[string][]byte{}, recent: map[string]bool{}, refsInLog: map[string]refRecord{}, broken: map[string]bool{},
		entries: map[uint64]objects.LogEntry{}, salvaged: map[string]objects.Ref{},
	}
}

// tally stands for a set: the number of its elements and the sum of their hashes.
type tally struct {
	count int
	sum   uint64
}

func (t *tally) add(key []byte) {
	h := fnv.New64a()
	_, _ = h.Write(key)
	t.count, t.sum = t.count+1, t.sum+h.Sum64()
}

// applyRefChange adds a key of the buckets about refs; a nil value deletes it.
func (a *checker) applyRefChange(bucket int, key, value []byte) {
	n := &a.refs
	switch bucket {
	case refsBucket:
		if n.refs[string(key)] = bytes.Clone(value); value == nil {
			delete(n.refs, string(key))
		}
	case recentBucket:
		if n.recent[string(key)] = true; value == nil {
			delete(n.recent, string(key))
		}
	case movesBucket:
		n.moves.add(key)
	case logBucket:
		a.checkLogValue(key, value)
	}
}

func (a *checker) checkLogValue(key, value []byte) {
	list, err := decodeEntries(key, value)
	if err != nil {
		a.damaged[logBucket] = true
		a.reportDamage("ref log", err, meanings[logBucket])
		return
	}
	for _, key := range moveKeysOf(list) {
		a.refs.movesInLog.add(key)
	}
	for _, e := range list {
		if a.audit.Deep { // salvage may find more
			a.refs.entries[e.Seq] = e
		} else {
			a.checkLogEntry(e)
		}
	}
}

// checkLogEntry adds the next entry and checks that it follows those before it.
func (a *checker) checkLogEntry(e objects.LogEntry) {
	const means = "moves of refs are lost or were changed, no commits"
	n := &a.refs
	if e.Seq <= n.lastSeq {
		a.reportDamage("ref log", fmt.Errorf("entry %d comes after entry %d", e.Seq, n.lastSeq), means)
	}
	n.lastSeq = e.Seq
	for _, u := range e.Refs {
		was := n.refsInLog[u.Name]
		what := ""
		switch {
		case a.damaged[logBucket] || n.broken[u.Name]: // reported before
		case u.Prev != was.entry:
			what = "is not in the log"
		case u.Old != was.Target:
			what = "moves it elsewhere"
		}
		if what != "" {
			n.broken[u.Name] = true
			a.reportDamage("ref log", fmt.Errorf("entry %d moves %q, and the entry of it before that %s", e.Seq, u.Name, what), means)
		}
		now := refRecord{objects.Ref{Name: u.Name, Target: u.New, Version: was.Version + 1, Updated: e.Note.Time}, e.Hash}
		if u.New.IsZero() {
			now.Version = 0
		}
		n.refsInLog[u.Name] = now
	}
	if a.stop == nil && a.audit.Entry != nil {
		a.stop = a.audit.Entry(e)
	}
}

// checkJournalChanges checks the objects of the journal, and adds its changes of refs to those of the file.
func (a *checker) checkJournalChanges() {
	if a.mem == nil {
		return
	}
	seen := a.mem.Mark()
	for _, e := range a.mem.All(objectsBucket, seen) {
		a.checkObject("journal", e.Key, e.Value)
	}
	for _, name := range []int{refsBucket, recentBucket, logBucket, movesBucket} {
		for _, e := range a.mem.Sorted(name, seen) {
			a.applyRefChange(name, e.Key, e.Value)
		}
	}
}

// checkRefs compares the refs with the log and the lists, and passes them to the callback.
func (a *checker) checkRefs() {
	n := &a.refs
	for _, seq := range slices.Sorted(maps.Keys(n.entries)) {
		a.checkLogEntry(n.entries[seq])
	}
	refs := map[string]refRecord{}
	for _, name := range slices.Sorted(maps.Keys(n.refs)) {
		r, err := decodeRef(name, n.refs[name])
		if err == nil {
			err = objects.CheckRefName(name)
		}
		if err == nil {
			refs[name] = r
			continue
		}
		a.damaged[refsBucket] = true
		a.reportDamage(fmt.Sprintf("ref %q", name), err, "where it was cannot be read")
	}
	a.compareRefs(refs)
	if a.audit.Deep {
		a.addLostRefs(refs)
	}
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		if a.stop == nil && a.audit.Ref != nil {
			a.stop = a.audit.Ref(refs[name].Ref)
		}
	}
}

// addLostRefs adds refs that only the log has, or a page that no tree has, if refs are lost. Of what
// is known of a ref, the newest counts.
func (a *checker) addLostRefs(refs map[string]refRecord) {
	n := &a.refs
	if !a.damaged[refsBucket] && a.snapshot.readable {
		return
	}
	for name, r := range n.salvaged {
		if s, ok := n.refsInLog[name]; !ok || s.Updated.Before(r.Updated) {
			n.refsInLog[name] = refRecord{Ref: r}
		}
	}
	for name, r := range n.refsInLog {
		if have, ok := refs[name]; !r.Target.IsZero() && (!ok || have.Updated.Before(r.Updated)) && objects.CheckRefName(name) == nil {
			refs[name] = r
		}
	}
}

// compareRefs compares the refs with the log, and the lists with what they derive from.
func (a *checker) compareRefs(refs map[string]refRecord) {
	n := &a.refs
	damagedRefs, damagedLog := a.damaged[refsBucket], a.damaged[logBucket]
	if !damagedRefs && !damagedLog {
		a.compareWithLog(refs)
	}
	recent := map[string]bool{}
	for _, r := range refs {
		recent[string(recentKey(r.Ref))] = true
	}
	const means = "nothing is lost; tract recover makes the list anew"
	if !damagedRefs && !a.damaged[recentBucket] && !maps.Equal(recent, n.recent) {
		a.reportDamage("refs by time", errors.New("the list does not match the refs"), means)
	}
	if !damagedLog && !a.damaged[movesBucket] && n.moves != n.movesInLog {
		a.reportDamage("log by name", errors.New("the list does not match the log"), means)
	}
}

// compareWithLog reports refs whose target or newest entry differs from the log.
func (a *checker) compareWithLog(refs map[string]refRecord) {
	names := maps.Clone(a.refs.refsInLog)
	maps.Copy(names, refs)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		r, there := refs[name]
		s := a.refs.refsInLog[name]
		what, means := error(nil), "the newest moves of refs may be lost, or it was changed from outside"
		switch {
		case a.refs.broken[name]: // reported before
		case !there && s.Target.IsZero(): // it was deleted
		case !there:
			what, means = fmt.Errorf("it is not there; the log says %s", s.Target.Short()), "a branch or a tag is lost; its commits are there"
		case s.entry.IsZero():
			what = errors.New("the log has no entry of it")
		case s.Target != r.Target || s.Version != r.Version:
			what = fmt.Errorf("it is at %s, version %d; the log says %s, version %d", r.Target.Short(), r.Version, s.Target.Short(), s.Version)
		case s.entry != r.entry:
			what = fmt.Errorf("it leads to log entry %s; the newest of it is %s", r.entry.Short(), s.entry.Short())
		}
		if what != nil {
			a.reportDamage(fmt.Sprintf("ref %q", name), what, means)
		}
	}
}
