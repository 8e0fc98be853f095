package bolt

// A long walk is read by one goroutine and used by another, and it takes as long as the
// slower of the two. The checksum of a head is the one step that needs nothing of the other
// heads: so whoever of them has time looks at it. Nothing of a head is given out before that.

// parseUnsummed is parsePackIn of a head whose checksum somebody looks at later, by settle.
// If it makes no sense, or ids have to be worked out, it is looked at here.
func parseUnsummed(a *arena, n uint32, b []byte) (*pack, error) {
	if len(b) < packIDs || frontOf(b).out > 0 {
		return parsePackIn(a, n, b)
	}
	p, err := openHead(a, n, b, true)
	if err != nil {
		return parsePackIn(a, n, b)
	}
	p.due = b
	return p, nil
}

// settle tells whether the checksum of a head is right, and looks if nobody has yet. Where it
// is wrong, nothing that was read of the head or found by it is to be used.
func (p *pack) settle() bool {
	b := p.due
	p.due = nil
	return b == nil || isSummed(p.n, b)
}

// packUnder reads the head of the pack before one. Its checksum may be due.
func (l *look) packUnder(after uint32) (*pack, error) {
	before := after - 1
	if !l.unsummed || before <= barePacks {
		return l.pack(before)
	}
	return l.packBy(before, func(n uint32, e entry) (*pack, error) {
		b, err := e.valueIn(l.arena)
		if err != nil {
			return nil, err
		}
		return parseUnsummed(l.arena, n, b)
	})
}
