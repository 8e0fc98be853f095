package objects

import (
	"context"
	"iter"
)

// Sift yields the commits that tips reach whose content may be what is looked for, each
// once and followed by what its first link refers to: may reports that of the data of the
// content. A commit whose content is in chunks is always yielded. Sift follows the first
// parents of a tip to the root or to a commit that it has passed, then those of the next
// tip, and at last those of the other parents of merges, in the order in which it met them.
//
// Errors are those of [Reader].Chain.
func Sift(ctx context.Context, s Store, tips []ID, may func(data []byte) bool) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		w := &sifter{may: may, seen: map[ID]struct{}{}, tips: tips, yield: yield}
		for len(w.tips) > 0 {
			tip := w.tips[0]
			w.tips = w.tips[1:len(w.tips):len(w.tips)]
			if _, seen := w.seen[tip]; !seen && !w.chain(s.Chain(ctx, tip, ChainOptions{Content: true})) {
				return
			}
		}
	}
}

// sifter is the state of a Sift.
type sifter struct {
	may   func([]byte) bool
	seen  map[ID]struct{}
	tips  []ID // of the chains to come
	yield func(Object, error) bool
}

// chain walks one chain. It reports whether the caller wants the next one.
func (w *sifter) chain(chain iter.Seq2[Object, error]) (more bool) {
	var of Object // the commit whose content comes next; without links: none
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
		default:
			before := len(w.seen)
			w.seen[obj.ID] = struct{}{}
			if len(w.seen) == before {
				return true
			}
			of = obj
			w.tips = append(w.tips, obj.Parents[min(1, len(obj.Parents)):]...)
		}
	}
	return true
}
