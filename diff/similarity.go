package diff

import (
	"unicode"
	"unicode/utf8"

	"github.com/tract-vcs/tract/content"
)

// Similarities, in thousandths of the words; equal blocks have more than any other two.
const (
	identical  = 2000
	minRelated = 400 // at least that of a system block, and of a call or result with the same call id
	threshold  = 300 // blocks of less are not paired
)

// similarity returns how similar two blocks are; 0: they must not be paired.
func similarity(a, b *Block, left, right *minHash) int {
	if a.roleAndContent == b.roleAndContent {
		return identical
	}
	if a.Role != b.Role || a.Kind != b.Kind || textOrToolName(a.Content) != textOrToolName(b.Content) {
		return 0
	}
	score := left.jaccard(right)
	if a.Kind == content.KindSystem || content.CallIDOf(a.Content) != "" && content.CallIDOf(a.Content) == content.CallIDOf(b.Content) {
		score = max(score, minRelated)
	}
	if score < threshold {
		return 0
	}
	return score
}

// textOrToolName returns the name of a text or of the called tool. Blocks with different names
// are not paired.
func textOrToolName(b content.Block) string {
	switch b := b.(type) {
	case content.Text:
		return b.Name
	case content.ToolCall:
		return b.Name
	}
	return ""
}

// minHash stands for the set of words and pairs of words of a text: of each of 64 parts of that
// set, the least hash (one-permutation minhash). Zero is none.
type minHash [64]uint32

// sampled is how much of each end of a text is looked at.
const sampled = 16 << 10

func minHashes(blocks []*Block) []*minHash {
	list := make([]*minHash, len(blocks))
	for i, b := range blocks {
		list[i] = &minHash{}
		text := b.Content.String()
		if len(text) <= 2*sampled {
			list[i].add(text)
		} else {
			list[i].add(text[:sampled])
			list[i].add(text[len(text)-sampled:])
		}
	}
	return list
}

// jaccard returns the estimated Jaccard similarity of both sets, in thousandths.
func (s *minHash) jaccard(t *minHash) (thousandths int) {
	shared, all := 0, 0
	for i := range s {
		if s[i]|t[i] == 0 {
			continue
		}
		all++
		if s[i] == t[i] {
			shared++
		}
	}
	if all == 0 {
		return 0
	}
	return 1000 * shared / all
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// add puts the words of a text in. A word is a run of letters and digits of one
// case; any other rune, and any that is a word by itself in its script, is one.
func (s *minHash) add(text string) {
	before, hash, inWord := uint64(0), uint64(fnvOffset), false
	end := func() {
		if inWord {
			s.keepLeast(hash)
			s.keepLeast(before*fnvPrime ^ hash)
			before, hash, inWord = hash, fnvOffset, false
		}
	}
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && size == 1 {
				r = rune(text[i]) + 0x110000 // a stray byte is like no rune
			}
		}
		i += size
		const ideographs = 0x2e80
		long := r < ideographs && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r))
		if !long {
			end()
		}
		if !long && unicode.IsSpace(r) {
			continue
		}
		hash, inWord = (hash^uint64(unicode.ToLower(r)))*fnvPrime, true
		if !long {
			end()
		}
	}
	end()
}

// keepLeast adds a hash to the set: it is kept if it is the least of its part.
func (s *minHash) keepLeast(hash uint64) {
	hash ^= hash >> 29 // FNV's low bits are weak
	hash *= 0xbf58476d1ce4e5b9
	hash ^= hash >> 32
	part, least := hash%uint64(len(s)), uint32(hash>>32)|1
	if s[part] == 0 || least < s[part] {
		s[part] = least
	}
}
