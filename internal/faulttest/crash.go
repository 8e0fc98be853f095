package faulttest

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// Crash is what a power failure can leave of a folder.
type Crash struct {
	After int    // so many steps of the trace had been done
	What  string // what of them reached the disk, for people

	files map[string][]byte
	dirs  map[string]bool
}

// Crashes yields what a power failure can leave behind when so many steps of a trace
// were done, or more; each once.
// What was synced is there. Of what was not, any part may be: all, nothing, all but
// one, one alone, a write without some of its sectors, and so many random choices at
// every step. What a failed sync should have made durable no later sync does, as
// with the page cache of Linux.
func (t *Trace) Crashes(from, random int, seed uint64) iter.Seq[*Crash] {
	return func(yield func(*Crash) bool) {
		seen, hash := map[uint64]bool{}, maphash.MakeSeed()
		r := rand.New(rand.NewPCG(seed, 1))
		m := &model{trace: t, solid: make([]content, len(t.Files))}
		for p := from; p <= len(t.Steps); p++ {
			if p > from && !t.Steps[p-1].changes() {
				continue
			}
			m.settle(p)
			for _, one := range m.choices(random, r) {
				c := m.crash(p, one)
				if sum := c.sum(hash, m.said); !seen[sum] {
					if seen[sum] = true; !yield(c) {
						return
					}
				}
			}
		}
	}
}

// changes tells whether another state can be left after the step than before, or
// more is promised.
func (s *Step) changes() bool { return s.Kind != Sync && s.Kind != SyncDir && s.Kind != Open }

// ofData tells whether the step changes what is in a file.
func (s *Step) ofData() bool { return s.Kind == Write || s.Kind == Truncate }

// ofNames tells whether the step changes which names there are.
func (s *Step) ofNames() bool {
	switch s.Kind {
	case Create, MakeDir, Link, Rename, Remove:
		return true
	default:
		return false
	}
}

// model is which steps may have reached the disk by some step.
type model struct {
	trace *Trace
	loose []cell // of what need not be there
	said  int    // times something was said
	held  map[int]bool
	solid []content
}

// cell is steps of which the last that reached the disk counts: writes over each
// other, or a single step.
type cell []int

// content is the first steps of a file, all of which are held.
type content struct {
	data []byte
	done int // steps of the trace that were looked at
}

// choice is what of the loose cells reached the disk.
type choice struct {
	what string
	keep []int // of each cell the number of the step that counts, from 1; 0: none
	torn int   // the cell of which only some sectors did; -1: none
	seed uint64
}

// settle finds out what is loose after p steps.
func (m *model) settle(p int) {
	m.held, m.loose, m.said = map[int]bool{}, nil, 0
	var open []int
	doomed := map[int]bool{}
	for i := range m.trace.Steps[:p] {
		s := &m.trace.Steps[i]
		switch {
		case s.ofData() || s.ofNames():
			open = append(open, i)
		case s.Kind == Say:
			m.said++
		case s.Kind == Sync || s.Kind == SyncDir:
			open = slices.DeleteFunc(open, func(k int) bool {
				if k >= s.Before || doomed[k] || !s.covers(&m.trace.Steps[k]) {
					return false
				}
				if s.Failed {
					doomed[k] = s.Kind == Sync
					return false
				}
				m.held[k] = true
				return true
			})
		}
	}
	at := map[string]int{}
	for _, i := range open {
		s := &m.trace.Steps[i]
		if s.Kind != Write {
			m.loose = append(m.loose, cell{i})
			continue
		}
		place := fmt.Sprint(s.File, s.At, len(s.Data))
		n, ok := at[place]
		if !ok || m.trace.crossed(m.loose[n], i) {
			n = len(m.loose)
			at[place], m.loose = n, append(m.loose, nil)
		}
		m.loose[n] = append(m.loose[n], i)
	}
}

// crossed tells whether a step between a cell and one more of it changes the same file,
// so that their order matters.
func (t *Trace) crossed(c cell, end int) bool {
	return slices.ContainsFunc(t.Steps[c[len(c)-1]+1:end], func(s Step) bool {
		return s.ofData() && s.File == t.Steps[end].File
	})
}

// covers tells whether a sync makes a step durable.
func (s *Step) covers(of *Step) bool {
	if s.Kind == Sync {
		return of.ofData() && of.File == s.File
	}
	return of.ofNames() && filepath.Dir(of.Name) == s.Name
}

// choices lists what of the loose cells may have reached the disk.
func (m *model) choices(random int, r *rand.Rand) (list []choice) {
	all, none := make([]int, len(m.loose)), make([]int, len(m.loose))
	for i, c := range m.loose {
		all[i] = len(c)
	}
	list = append(list, choice{"everything", all, -1, 0})
	if len(m.loose) == 0 {
		return list
	}
	list = append(list, choice{"nothing", none, -1, 0})
	for i, c := range m.loose {
		for version := range c {
			if version == 0 || version == len(c)-1 {
				but := slices.Clone(all)
				but[i] = version
				list = append(list, choice{"all but " + m.tell(i), but, -1, 0})
			}
		}
		alone := slices.Clone(none)
		alone[i] = len(c)
		list = append(list, choice{"only " + m.tell(i), alone, -1, 0})
		if s := &m.trace.Steps[c[len(c)-1]]; s.Kind == Write && len(s.Data) > sector {
			list = append(list, choice{"torn " + m.tell(i), all, i, r.Uint64()}, choice{"only, and torn, " + m.tell(i), alone, i, r.Uint64()})
		}
	}
	for range random {
		some := slices.Clone(none)
		for i, c := range m.loose {
			some[i] = r.IntN(2) * (1 + r.IntN(len(c)))
		}
		torn := -1
		if r.IntN(2) == 0 {
			torn = r.IntN(len(m.loose))
		}
		list = append(list, choice{fmt.Sprint("at random ", some), some, torn, r.Uint64()})
	}
	return list
}

// tell names a cell for people.
func (m *model) tell(i int) string {
	s := &m.trace.Steps[m.loose[i][len(m.loose[i])-1]]
	if s.Kind == Write {
		return fmt.Sprintf("%v %s at %d (%d bytes)", s.Kind, s.Name, s.At, len(s.Data))
	}
	return fmt.Sprintf("%v %s", s.Kind, s.Name)
}

// crash makes the folder of a choice.
func (m *model) crash(p int, one choice) *Crash {
	c := &Crash{After: p, What: fmt.Sprintf("after %d steps, of what was not synced %s", p, one.what), files: map[string][]byte{}, dirs: map[string]bool{}}
	kept, torn := map[int]bool{}, -1
	for i, version := range one.keep {
		if version > 0 {
			kept[m.loose[i][version-1]] = true
		}
		if i == one.torn && version > 0 {
			torn = m.loose[i][version-1]
		}
	}
	r := rand.New(rand.NewPCG(one.seed, 2))
	for name, file := range m.names(p, kept, c.dirs) {
		c.files[name] = m.file(file, p, func(data []byte, i int) []byte {
			if i == torn {
				return tear(data, &m.trace.Steps[i], r)
			}
			if m.held[i] || kept[i] {
				return m.trace.Steps[i].onto(data)
			}
			return data
		})
	}
	return c
}

// names gives the names that there are, and which file has which.
func (m *model) names(p int, kept map[int]bool, dirs map[string]bool) map[string]int {
	names := maps.Clone(m.trace.Names)
	for _, d := range m.trace.Dirs {
		dirs[d] = true
	}
	for i := range m.trace.Steps[:p] {
		s := &m.trace.Steps[i]
		if !s.ofNames() || !m.held[i] && !kept[i] {
			continue
		}
		switch s.Kind {
		case MakeDir:
			dirs[s.Name] = true
		case Remove:
			delete(names, s.Name)
			delete(dirs, s.Name)
		case Rename:
			m.moveDir(names, dirs, s)
			if s.File >= 0 {
				delete(names, s.From)
				names[s.Name] = s.File
			}
		default:
			names[s.Name] = s.File
		}
	}
	maps.DeleteFunc(names, func(name string, _ int) bool { return !reachable(name, dirs) })
	return names
}

// moveDir gives a folder another name, if it is one.
func (m *model) moveDir(names map[string]int, dirs map[string]bool, s *Step) {
	if !dirs[s.From] {
		return
	}
	delete(dirs, s.From)
	dirs[s.Name] = true
	for name, file := range maps.Clone(names) {
		if rest, ok := strings.CutPrefix(name, s.From+"/"); ok {
			delete(names, name)
			names[s.Name+"/"+rest] = file
		}
	}
}

// reachable tells whether the folders above a name are there.
func reachable(name string, dirs map[string]bool) bool {
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if !dirs[dir] {
			return false
		}
	}
	return true
}

// file gives the content of a file after p steps, to each of which add is asked.
// What is held from the beginning on is kept for the next.
func (m *model) file(n, p int, add func(data []byte, i int) []byte) []byte {
	base := &m.solid[n]
	if base.data == nil {
		base.data = append([]byte{}, m.trace.Files[n]...)
	}
	for ; base.done < p; base.done++ {
		s := &m.trace.Steps[base.done]
		if !s.ofData() || s.File != n {
			continue
		}
		if !m.held[base.done] {
			break
		}
		base.data = s.onto(base.data)
	}
	data := bytes.Clone(base.data)
	for i := base.done; i < p; i++ {
		if s := &m.trace.Steps[i]; s.ofData() && s.File == n {
			data = add(data, i)
		}
	}
	return data
}

// onto does the step to the content of its file.
func (s *Step) onto(data []byte) []byte {
	if s.Kind == Truncate {
		return resize(data, s.Size)
	}
	data = resize(data, max(int64(len(data)), s.At+int64(len(s.Data))))
	copy(data[s.At:], s.Data)
	return data
}

func resize(data []byte, size int64) []byte {
	if size <= int64(len(data)) {
		return data[:size]
	}
	return append(data, make([]byte, size-int64(len(data)))...)
}

// tear does some sectors of a write.
func tear(data []byte, s *Step, r *rand.Rand) []byte {
	end := s.At + int64(len(s.Data))
	if s.Kind == Truncate || int64(len(data)) >= end || r.IntN(2) == 0 {
		data = resize(data, max(int64(len(data)), end))
	}
	for at := s.At; at < end; {
		next := min(end, (at/sector+1)*sector)
		if r.IntN(2) == 0 {
			data = resize(data, max(int64(len(data)), next))
			copy(data[at:next], s.Data[at-s.At:])
		}
		at = next
	}
	return data
}

func (c *Crash) sum(seed maphash.Seed, said int) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = fmt.Fprintln(&h, said, slices.Sorted(maps.Keys(c.dirs)))
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		_, _ = fmt.Fprintln(&h, name, len(c.files[name]))
		_, _ = h.Write(c.files[name])
	}
	return h.Sum64()
}

// Has tells whether a file is there.
func (c *Crash) Has(name string) bool {
	_, ok := c.files[name]
	return ok
}

// Write makes a folder be what was left.
func (c *Crash) Write(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.dirs)) {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	for name, b := range c.files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}
