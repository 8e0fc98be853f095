package objects

import (
	"context"
	"iter"
)

// Sifter is a store that can search through what histories say faster than a Chain
// with Content gives it out. It is optional; [Sift] asks for it.
type Sifter interface {
	// Sift is [Sift] over the store. What it yields is verified.
	Sift(ctx context.Context, tips []ID, may func(data []byte) bool) iter.Seq2[Object, error]
}

// Sift yields commits that tips reach, each once and followed by what its first
// link names: those where the data of that may be what is looked for, and those
// where it is in chunks. It goes down the first parents of a tip, to the root or
// to a commit where it was before, then those of the next tip, and at last those
// of the other parents of merges, in the order in which they were met.
//
// may is called by several goroutines at once and keeps nothing of data. What it
// lets through in a piece of data it must let through in the whole: it is asked
// about many objects at once, with other bytes around them.
//
// Errors are those of [Reader].Chain.
func Sift(ctx context.Context, s Store, tips []ID, may func(data []byte) bool) iter.Seq2[Object, error] {
	if own, ok := As[Sifter](s); ok {
		return own.Sift(ctx, tips, may)
	}
	return func(yield func(Object, error) bool) {
		seen := map[ID]bool{}
		for len(tips) > 0 {
			tip := tips[0]
			if tips = tips[1:len(tips):len(tips)]; seen[tip] {
				continue
			}
			w := &sifting{may: may, seen: seen, yield: yield}
			if !w.line(s.Chain(ctx, tip, ChainOptions{Content: true})) {
				return
			}
			tips = append(tips, w.others...)
		}
	}
}

// sifting is the walk down one line.
type sifting struct {
	may    func([]byte) bool
	seen   map[ID]bool
	others []ID // parents that are not on the line
	yield  func(Object, error) bool
}

// line tells whether the walk goes on with the next line.
func (w *sifting) line(chain iter.Seq2[Object, error]) bool {
	var of Object // the commit whose content is to come; without links: none
	for obj, err := range chain {
		switch isContent := len(of.Links) > 0; {
		case err != nil && !(isContent && ofOneObject(err)):
			w.yield(obj, err)
			return false
		case isContent:
			c := of
			of = Object{}
			if err == nil && obj.Kind != KindList && !w.may(obj.Data) {
				continue
			}
			if !w.yield(c, nil) || !w.yield(obj, err) {
				return false
			}
		case w.seen[obj.ID]:
			return true
		default:
			of = obj
			w.seen[obj.ID] = true
			w.others = append(w.others, obj.Parents[min(1, len(obj.Parents)):]...)
		}
	}
	return true
}
