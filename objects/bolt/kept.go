package bolt

import "sync"

// keptPages is how many pages a moment keeps: the upper ones of its trees and the
// leaves of what lies newest, which come first.
const keptPages = 64

// kept is what the looks at one moment read alike. A page never changes while
// somebody may look at the moment, and none of these lies in an arena. A nil one
// keeps nothing. It may be used by many goroutines at once.
type kept struct {
	mu    sync.Mutex
	pages map[uint64]*page
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
