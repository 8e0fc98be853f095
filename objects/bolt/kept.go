package bolt

import "sync"

// keptPages is how many pages a moment keeps: the upper ones of its trees and the
// leaves of what lies newest, which come first.
const keptPages = 64

// kept is what the looks at one moment read alike. A page never changes while
// somebody may look at the moment, and none of these lies in an arena. A nil one
// keeps nothing. It may be used by many goroutines at once.
type kept struct {
	mu     sync.Mutex
	pages  map[uint64]*page
	absent map[string]bool // names without a ref, as the log says too
}

// page gives a page that was read before; more tells whether others are kept.
func (k *kept) page(id uint64) (p *page, more bool) {
	if k == nil {
		return nil, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pages[id], len(k.pages) < keptPages
}

func (k *kept) keep(p *page) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pages == nil {
		k.pages = map[uint64]*page{}
	}
	k.pages[p.id] = p
}

// isAbsent tells whether it is known that there is no ref of a name.
func (k *kept) isAbsent(name string) bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.absent[name]
}

func (k *kept) noteAbsent(name string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.absent == nil {
		k.absent = map[string]bool{}
	}
	if len(k.absent) < keptPages {
		k.absent[name] = true
	}
}
