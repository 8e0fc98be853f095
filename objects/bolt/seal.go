package bolt

import (
	"encoding/binary"
	"fmt"

	"github.com/tract-vcs/tract/objects"
)

// seal lays objects together as they will be read: line by line, each commit after
// what it links to. It gives the keys to write for them. Every object is hashed
// here, since a checksum stands for that later.
func sealObjects(l *look, records []edit) ([]change, error) {
	list := make([]objects.Object, 0, len(records))
	var loose []change
	for _, r := range records {
		id := objects.ID(r.key)
		o, err := shareObject(id, r.value)
		if err == nil {
			err = o.Check()
		}
		if err != nil {
			return nil, err
		}
		if len(r.value) >= looseSize {
			loose = append(loose, change{objectsBucket, r.key, r.value})
			continue
		}
		list = append(list, o)
	}
	list, err := l.unstored(list)
	if err != nil || len(list) == 0 {
		return loose, err
	}
	n, err := l.nextPack()
	if err != nil {
		return nil, err
	}
	back, err := l.unbury(list)
	if err != nil {
		return nil, err
	}
	loose = append(loose, back...)
	entries := make([]indexEntry, 0, len(list))
	for _, run := range cut(inLines(list), young) {
		head, body := encodePack(n, run, codecRaw)
		loose = append(loose, change{headsBucket, packKey(n), head}, change{bodiesBucket, packKey(n), body})
		for i := range run {
			entries = append(entries, newIndexEntry(run[i].ID, place{n, i}))
		}
		n++
	}
	index, err := l.addRun(entries)
	return append(loose, index...), err
}

// nextPack is the number of the next pack.
func (l *look) nextPack() (uint32, error) {
	for e, err := range l.descend(headsBucket, []byte{0xff, 0xff, 0xff, 0xff}) {
		if err != nil {
			return 0, err
		}
		if len(e.key) != 4 {
			return 0, fmt.Errorf("the key of a pack has %d bytes", len(e.key))
		}
		return binary.BigEndian.Uint32(e.key) + 1, nil
	}
	return 1, nil
}

// inLines orders objects by the line of their commits. A line goes on with the
// commit whose first parent is its last one; the first to come has it.
func inLines(list []objects.Object) []objects.Object {
	at := make(map[objects.ID]int, len(list))
	for i := range list {
		at[list[i].ID] = i
	}
	var lines [][]int
	tips := map[objects.ID]int{} // the line that ends there
	taken := make([]bool, len(list))
	var take func(line []int, i int) []int
	take = func(line []int, i int) []int {
		taken[i] = true
		for _, id := range list[i].Links {
			if k, ok := at[id]; ok && !taken[k] && list[k].Kind != objects.KindCommit {
				line = take(line, k)
			}
		}
		return append(line, i)
	}
	for i, o := range list {
		if o.Kind != objects.KindCommit {
			continue
		}
		line, ok := len(lines), false
		if len(o.Parents) > 0 {
			if line, ok = tips[o.Parents[0]]; ok {
				delete(tips, o.Parents[0])
			}
		}
		if !ok {
			line, lines = len(lines), append(lines, nil)
		}
		lines[line] = take(lines[line], i)
		tips[o.ID] = line
	}
	ordered := make([]objects.Object, 0, len(list))
	for _, line := range lines {
		for _, i := range line {
			ordered = append(ordered, list[i])
		}
	}
	for i := range list {
		if !taken[i] {
			ordered = append(ordered, list[i])
		}
	}
	return ordered
}

// cut divides objects into packs. Each is cut after a commit, so that a commit has
// its content beside it, unless none comes for long.
func cut(list []objects.Object, most limits) (runs [][]objects.Object) {
	commits, size, from := 0, 0, 0
	for i := range list {
		size += len(list[i].Data)
		isCommit := list[i].Kind == objects.KindCommit
		if isCommit {
			commits++
		}
		full := isCommit && (commits == most.commits || size >= most.bytes || i-from >= most.objects*3/4)
		if full || i-from+1 == most.objects || size >= 4*most.bytes {
			runs = append(runs, list[from:i+1])
			commits, size, from = 0, 0, i+1
		}
	}
	if from < len(list) {
		runs = append(runs, list[from:])
	}
	return runs
}
