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

// refState collects the refs, their log, and the two lists derived from them.
type refState struct {
	refs   map[string][]byte
	recent map[string]bool
	moves  tally // in the list by name
	logged tally // in the log

	entries map[uint64]objects.LogEntry // of a deep audit
	found   map[string]objects.Ref      // refs on pages that no tree has
	last    uint64                      // Seq of the previous entry
	torn    bool                        // entries of the log could not be read
	broken  map[string]bool             // refs whose chain of entries is broken
	states  map[string]refRecord        // refs according to the log; a zero target: deleted
}

// tally stands for a set: the number of its elements and the sum of their hashes.
type tally struct{ count, sum uint64 }

func (t *tally) add(key []byte) {
	h := fnv.New64a()
	_, _ = h.Write(key)
	t.count, t.sum = t.count+1, t.sum+h.Sum64()
}

// nameRow adds a key of the buckets about refs; a nil value deletes it.
func (a *checker) nameRow(bucket int, key, value []byte) error {
	n := &a.names
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
		return a.logRow(key, value)
	}
	return nil
}

func (a *checker) logRow(key, value []byte) error {
	list, err := decodeEntries(key, value)
	if err != nil {
		if isStop(err) {
			return err
		}
		a.damaged[logBucket], a.names.torn = true, true
		return a.reportDamage("ref log", err, meanings[logBucket])
	}
	for _, key := range movesOf(list) {
		a.names.logged.add(key)
	}
	for _, e := range list {
		if a.to.Deep { // salvage may find more
			a.names.keep(e)
		} else if err := a.logEntry(e); err != nil {
			return err
		}
	}
	return nil
}

func (n *refState) keep(e objects.LogEntry) {
	if n.entries == nil {
		n.entries = map[uint64]objects.LogEntry{}
	}
	n.entries[e.Seq] = e
}

// logEntry adds the next entry and checks that it follows those before it.
func (a *checker) logEntry(e objects.LogEntry) error {
	n := &a.names
	if e.Seq <= n.last {
		if err := a.reportDamage("ref log", fmt.Errorf("entry %d comes after entry %d", e.Seq, n.last), meansLog); err != nil {
			return err
		}
	}
	n.last = e.Seq
	for _, u := range e.Refs {
		was := n.states[u.Name]
		what := error(nil)
		switch {
		case n.torn || n.broken[u.Name]: // reported before
		case u.Prev != was.entry:
			what = fmt.Errorf("entry %d moves %q, and the entry of it before that is not there", e.Seq, u.Name)
		case u.Old != was.Target:
			what = fmt.Errorf("entry %d moves %q from elsewhere than it was", e.Seq, u.Name)
		}
		if what != nil {
			n.broken[u.Name] = true
			if err := a.reportDamage("ref log", what, meansLog); err != nil {
				return err
			}
		}
		now := refRecord{objects.Ref{Name: u.Name, Target: u.New, Version: was.Version + 1, Updated: e.Note.Time}, e.Hash}
		if u.New.IsZero() {
			now.Version = 0
		}
		n.states[u.Name] = now
	}
	if a.to.Entry == nil {
		return nil
	}
	return a.to.Entry(e)
}

const meansLog = "moves of refs are lost or were changed, no commits"

// checkJournalRecords adds the changes of the journal, which come after the file.
func (a *checker) checkJournalRecords() error {
	if a.mem == nil {
		return nil
	}
	seen := a.mem.Mark()
	defer a.abandon()
	for _, e := range a.mem.All(objectsBucket, seen) {
		if err := a.loose("journal", e.Key, e.Value); err != nil {
			return err
		}
	}
	if err := a.finishChecks(); err != nil {
		return err
	}
	for _, name := range []int{refsBucket, recentBucket, logBucket, movesBucket} {
		for _, e := range a.mem.Sorted(name, seen) {
			if err := a.nameRow(name, e.Key, e.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkRefs compares the refs with the log and the lists, and passes them to the callback.
func (a *checker) checkRefs() error {
	n := &a.names
	for _, seq := range slices.Sorted(maps.Keys(n.entries)) {
		if err := a.logEntry(n.entries[seq]); err != nil {
			return err
		}
	}
	refs := map[string]refRecord{}
	for _, name := range slices.Sorted(maps.Keys(n.refs)) {
		r, err := decodeRef(name, n.refs[name])
		if err == nil {
			err = objects.CheckRefName(name)
		}
		if err != nil {
			a.damaged[refsBucket] = true
			if err := a.reportDamage(fmt.Sprintf("ref %q", name), err, "where it was cannot be read"); err != nil {
				return err
			}
			continue
		}
		refs[name] = r
	}
	if err := a.checkRefLists(refs); err != nil {
		return err
	}
	if a.to.Deep {
		a.addLost(refs)
	}
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		if a.to.Ref != nil {
			if err := a.to.Ref(refs[name].Ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// addLost adds refs that only the log has, or a page that no tree has, if refs are lost.
func (a *checker) addLost(refs map[string]refRecord) {
	if !a.damaged[refsBucket] && len(a.pages) > 0 {
		return
	}
	for name, r := range a.names.states {
		if have, ok := refs[name]; !r.Target.IsZero() && (!ok || have.Updated.Before(r.Updated)) && objects.CheckRefName(name) == nil {
			refs[name] = r
		}
	}
	logHurt := a.damaged[logBucket] || a.names.torn || len(a.names.broken) > 0
	for name, r := range a.names.found {
		if have, ok := refs[name]; logHurt && (!ok || have.Updated.Before(r.Updated)) {
			refs[name] = refRecord{Ref: r}
		}
	}
}

// checkRefLists compares the refs with the log, and the lists with what they derive from.
func (a *checker) checkRefLists(refs map[string]refRecord) error {
	n := &a.names
	const means = "nothing is lost; tract recover makes the list anew"
	hurtRefs, hurtLog := a.damaged[refsBucket], a.damaged[logBucket] || n.torn
	if !hurtRefs && !hurtLog {
		if err := a.checkRefTargets(refs); err != nil {
			return err
		}
	}
	if !hurtRefs && !a.damaged[recentBucket] {
		wrong := len(refs) != len(n.recent)
		for _, r := range refs {
			wrong = wrong || !n.recent[string(recentKey(r.Ref))]
		}
		if wrong {
			if err := a.reportDamage("refs by time", errors.New("the list does not fit the refs"), means); err != nil {
				return err
			}
		}
	}
	if !hurtLog && !a.damaged[movesBucket] && n.moves != n.logged {
		return a.reportDamage("log by name", errors.New("the list does not fit the log"), means)
	}
	return nil
}

// checkRefTargets reports refs whose target or newest entry differs from the log.
func (a *checker) checkRefTargets(refs map[string]refRecord) error {
	for name, r := range refs {
		s := a.names.states[name]
		what := error(nil)
		switch {
		case a.names.broken[name]: // reported before
		case s.entry.IsZero():
			what = errors.New("the log has no entry of it")
		case s.Target != r.Target || s.Version != r.Version:
			what = fmt.Errorf("it is at %s, version %d; the log says %s, version %d", r.Target.Short(), r.Version, s.Target.Short(), s.Version)
		case s.entry != r.entry:
			what = fmt.Errorf("it leads to log entry %s; the newest of it is %s", r.entry.Short(), s.entry.Short())
		}
		if what != nil {
			if err := a.reportDamage(fmt.Sprintf("ref %q", name), what, "the newest moves of refs may be lost, or it was changed from outside"); err != nil {
				return err
			}
		}
	}
	for name, s := range a.names.states {
		if _, ok := refs[name]; !ok && !s.Target.IsZero() && !a.names.broken[name] {
			err := fmt.Errorf("it is not there; the log says %s", s.Target.Short())
			if err := a.reportDamage(fmt.Sprintf("ref %q", name), err, "a branch or a tag is lost; its commits are there"); err != nil {
				return err
			}
		}
	}
	return nil
}
