package bolt

import (
	"slices"
	"sync"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/index"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
)

// packObjects returns the changes that store objects in packs, laid out in the order in which
// they will be read: chain by chain, each commit after what it links to. The checksum of a
// pack stands for the hashes of its objects. So records of the journal, which another process
// may have written, and which have been on a disk, are hashed here; the objects of a bulk
// batch are in the memory that was hashed when the batch was given.
func packObjects(l *snapshot, records []memtable.Entry, bulk []objects.Object) ([]journal.Change, error) {
	list, err := l.decodeRecords(records)
	if err == nil {
		list, err = l.deletePacked(list)
	}
	if err != nil {
		return nil, err
	}
	if list = append(list, bulk...); len(list) == 0 {
		return nil, nil
	}
	n, err := l.nextPackNumber()
	if err != nil {
		return nil, err
	}
	deletions, err := l.tombstoneDeletions(list)
	if err != nil {
		return nil, err
	}
	packs, entries := encodePacks(n, splitPacks(inHistoryOrder(list), youngLimits))
	run, err := l.changesToAddRun(entries)
	return slices.Concat(deletions, packs, run), err
}

// decodeRecords decodes records of the journal and checks their hashes.
func (l *snapshot) decodeRecords(records []memtable.Entry) ([]objects.Object, error) {
	list := make([]objects.Object, 0, len(records))
	edgeBuf := make([]objects.ID, 0, len(records))
	for _, r := range records {
		o, err := decodeShared(objects.ID(r.Key), r.Value, &edgeBuf)
		if err == nil {
			err = o.Check()
		}
		if err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, nil
}

// encodePacks returns the changes that store packs, and the index entries of their objects.
func encodePacks(first uint32, runs [][]objects.Object) (changes []journal.Change, entries []index.Entry) {
	changes = make([]journal.Change, 2*len(runs))
	var encoding sync.WaitGroup
	for k, run := range runs {
		n := first + uint32(k)
		encoding.Go(func() {
			head, body := encodePack(n, run, codecRaw)
			changes[2*k], changes[2*k+1] = setKey(headsBucket, packKey(n), head), setKey(bodiesBucket, packKey(n), body)
		})
		for i := range run {
			entries = append(entries, newIndexEntry(run[i].ID, place{n, i}))
		}
	}
	encoding.Wait()
	return changes, entries
}

// nextPackNumber returns the number of the next pack.
func (l *snapshot) nextPackNumber() (uint32, error) {
	for e, err := range l.descend(headsBucket, []byte{0xff, 0xff, 0xff, 0xff}) {
		if err != nil {
			return 0, err
		}
		last, err := packNumber(e.Key)
		return last + 1, err
	}
	return 1, nil
}

// inHistoryOrder orders objects by the chains of their commits. A chain continues with the first
// commit whose first parent is its last one.
func inHistoryOrder(list []objects.Object) []objects.Object {
	at := make(map[objects.ID]int, len(list))
	for i := range list {
		if _, again := at[list[i].ID]; !again {
			at[list[i].ID] = i
		}
	}
	ordered, taken := make([]objects.Object, 0, len(list)), make([]bool, len(list))
	var take func(i int)
	take = func(i int) {
		taken[i] = true
		for _, id := range list[i].Links {
			if k, ok := at[id]; ok && !taken[k] && list[k].Kind != objects.KindCommit {
				take(k)
			}
		}
		ordered = append(ordered, list[i])
	}
	for _, chain := range commitChains(list, at) {
		for _, i := range chain {
			take(i)
		}
	}
	for i := range list {
		if !taken[i] {
			ordered = append(ordered, list[i])
		}
	}
	return ordered
}

// commitChains returns the commits of a list, chain by chain. at has the places of the
// objects in the list.
func commitChains(list []objects.Object, at map[objects.ID]int) (chains [][]int) {
	ends := map[int]int{} // the chain that ends with a commit
	for i := range list {
		o := &list[i]
		if o.Kind != objects.KindCommit {
			continue
		}
		chain := len(chains)
		if len(o.Parents) > 0 {
			if parent, ok := at[o.Parents[0]]; ok {
				if end, ok := ends[parent]; ok {
					chain = end
					delete(ends, parent)
				}
			}
		}
		if chain == len(chains) {
			chains = append(chains, nil)
		}
		chains[chain] = append(chains[chain], i)
		ends[i] = chain
	}
	return chains
}

// splitPacks divides objects into packs. A large object has a pack of its own, so that nobody unpacks
// it who reads what lies beside it in a history. Every other pack ends with a commit, so that a commit
// has its content beside it, unless none comes for long. The memory of the list is used again.
func splitPacks(list []objects.Object, max limits) (packs [][]objects.Object) {
	list = slices.DeleteFunc(list, func(o objects.Object) bool {
		isLarge := len(o.Data) >= largeSize
		if isLarge {
			packs = append(packs, []objects.Object{o})
		}
		return isLarge
	})
	commits, size, from := 0, 0, 0
	for i := range list {
		size += len(list[i].Data)
		isCommit := list[i].Kind == objects.KindCommit
		if isCommit {
			commits++
		}
		full := isCommit && (commits == max.commits || size >= max.bytes || i-from >= max.objects*3/4)
		if full || i-from+1 == max.objects || size >= 4*max.bytes {
			packs = append(packs, list[from:i+1])
			commits, size, from = 0, 0, i+1
		}
	}
	if from < len(list) {
		packs = append(packs, list[from:])
	}
	return packs
}
