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

// nameAudit is refs, their log, and the two lists made of them.
type nameAudit struct {
	refs   map[string][]byte
	recent map[string]bool
	moves  tally // that the list by name has
	logged tally // that the log has

	entries map[uint64]objects.LogEntry // of a deep audit
	scraps  map[string]objects.Ref      // refs where nothing leads to
	last    uint64                      // Seq of the entry before
	torn    bool                        // entries of the log could not be read
	broken  map[string]bool             // refs whose chain of entries is broken
	states  map[string]refRecord        // refs as the log leaves them; a zero target: deleted
}

// tally stands for a set of moves: how many, and a sum of their hashes.
type tally struct{ count, sum uint64 }

func (t *tally) add(key []byte) {
	h := fnv.New64a()
	_, _ = h.Write(key)
	t.count, t.sum = t.count+1, t.sum+h.Sum64()
}

// nameRow takes in a key of the buckets that are about refs; a nil value deletes it.
func (a *auditor) nameRow(bucket int, key, value []byte) error {
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

func (a *auditor) logRow(key, value []byte) error {
	list, err := decodeEntries(key, value)
	if err != nil {
		if foreign(err) {
			return err
		}
		a.hurt[logBucket], a.names.torn = true, true
		return a.damage("ref log", err, meanings[logBucket])
	}
	for _, key := range movesOf(list) {
		a.names.logged.add(key)
	}
	for _, e := range list {
		if a.to.Deep { // more of them may be found elsewhere
			a.names.keep(e)
		} else if err := a.logEntry(e); err != nil {
			return err
		}
	}
	return nil
}

func (n *nameAudit) keep(e objects.LogEntry) {
	if n.entries == nil {
		n.entries = map[uint64]objects.LogEntry{}
	}
	n.entries[e.Seq] = e
}

// logEntry takes in the next entry, which says where refs are from then on.
func (a *auditor) logEntry(e objects.LogEntry) error {
	n := &a.names
	if e.Seq <= n.last {
		if err := a.damage("ref log", fmt.Errorf("entry %d comes after entry %d", e.Seq, n.last), meansLog); err != nil {
			return err
		}
	}
	n.last = e.Seq
	for _, u := range e.Refs {
		was := n.states[u.Name]
		what := error(nil)
		switch {
		case n.torn || n.broken[u.Name]: // it was told
		case u.Prev != was.entry:
			what = fmt.Errorf("entry %d moves %q, and the entry of it before that is not there", e.Seq, u.Name)
		case u.Old != was.Target:
			what = fmt.Errorf("entry %d moves %q from elsewhere than it was", e.Seq, u.Name)
		}
		if what != nil {
			n.broken[u.Name] = true
			if err := a.damage("ref log", what, meansLog); err != nil {
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

// recorded takes in what the journal has: it comes after what the file has.
func (a *auditor) recorded() error {
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
	if err := a.settleChecks(); err != nil {
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

// settleNames passes on the refs, and holds them to the log and to the lists.
func (a *auditor) settleNames() error {
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
			a.hurt[refsBucket] = true
			if err := a.damage(fmt.Sprintf("ref %q", name), err, "where it was cannot be read"); err != nil {
				return err
			}
			continue
		}
		refs[name] = r
	}
	if err := a.settleLists(refs); err != nil {
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

// addLost adds the refs that only the log still knows, or a page to which nothing
// leads, when some are lost.
func (a *auditor) addLost(refs map[string]refRecord) {
	if !a.hurt[refsBucket] && len(a.pages) > 0 {
		return
	}
	for name, r := range a.names.states {
		if have, ok := refs[name]; !r.Target.IsZero() && (!ok || have.Updated.Before(r.Updated)) && objects.CheckRefName(name) == nil {
			refs[name] = r
		}
	}
	logHurt := a.hurt[logBucket] || a.names.torn || len(a.names.broken) > 0
	for name, r := range a.names.scraps {
		if have, ok := refs[name]; logHurt && (!ok || have.Updated.Before(r.Updated)) {
			refs[name] = refRecord{Ref: r}
		}
	}
}

// settleLists holds the refs to the log, and the lists to what they are made of.
func (a *auditor) settleLists(refs map[string]refRecord) error {
	n := &a.names
	const means = "nothing is lost; tract recover makes the list anew"
	hurtRefs, hurtLog := a.hurt[refsBucket], a.hurt[logBucket] || n.torn
	if !hurtRefs && !hurtLog {
		if err := a.settleRefs(refs); err != nil {
			return err
		}
	}
	if !hurtRefs && !a.hurt[recentBucket] {
		wrong := len(refs) != len(n.recent)
		for _, r := range refs {
			wrong = wrong || !n.recent[string(recentKey(r.Ref))]
		}
		if wrong {
			if err := a.damage("refs by time", errors.New("the list does not fit the refs"), means); err != nil {
				return err
			}
		}
	}
	if !hurtLog && !a.hurt[movesBucket] && n.moves != n.logged {
		return a.damage("log by name", errors.New("the list does not fit the log"), means)
	}
	return nil
}

// settleRefs tells of refs that are not where the log says, or lead to an entry that is not
// the newest of theirs.
func (a *auditor) settleRefs(refs map[string]refRecord) error {
	for name, r := range refs {
		s := a.names.states[name]
		what := error(nil)
		switch {
		case a.names.broken[name]: // it was told
		case s.entry.IsZero():
			what = errors.New("the log has no entry of it")
		case s.Target != r.Target || s.Version != r.Version:
			what = fmt.Errorf("it is at %s, version %d; the log says %s, version %d", r.Target.Short(), r.Version, s.Target.Short(), s.Version)
		case s.entry != r.entry:
			what = fmt.Errorf("it leads to log entry %s; the newest of it is %s", r.entry.Short(), s.entry.Short())
		}
		if what != nil {
			if err := a.damage(fmt.Sprintf("ref %q", name), what, "the newest moves of refs may be lost, or it was changed from outside"); err != nil {
				return err
			}
		}
	}
	for name, s := range a.names.states {
		if _, ok := refs[name]; !ok && !s.Target.IsZero() && !a.names.broken[name] {
			err := fmt.Errorf("it is not there; the log says %s", s.Target.Short())
			if err := a.damage(fmt.Sprintf("ref %q", name), err, "a branch or a tag is lost; its commits are there"); err != nil {
				return err
			}
		}
	}
	return nil
}
