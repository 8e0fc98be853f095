// Package secrets finds keys, tokens and passwords in text, and masks them.
//
// For most uses: [Mask] returns a text with every secret replaced by a mask, and
// [Find] returns where the secrets are. [Rules] lists the rules. [ReplaceSecret] replaces
// one secret that the caller has.
//
// A mask is [masked:RULE:HEX]. It depends on the secret alone, so that equal
// secrets have equal masks and a text is masked the same way at any time. HEX is 16
// bits of a hash. A generated key of 128 random bits keeps 112 bits to guess, and any
// other key has the same mask with a probability of 1 in 65,536. A password that a
// person chose is different: its 16 bits would make a dictionary attack easier. So
// the HEX of a secret of fewer than 16 bytes is a hash of the rule alone.
//
// Masking is idempotent (a masked text does not change), takes time linear in the
// text, and leaves JSON valid: inside JSON only strings change. Secrets are also found
// in escaped JSON strings, up to three levels deep, as in a tool call in a response in
// a log, and within these in the escapes of URLs (%73), HTML (&#115; &quot;) and
// programs (\x73). A value that looks like an example, such as sk-..., ${TOKEN} or
// AKIAIOSFODNN7EXAMPLE, is not a secret. A secret that is encoded as a whole (base64,
// another alphabet) is not found.
//
// The package depends on no storage and no model.
package secrets

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Finding is one secret in a text.
type Finding struct {
	Rule       string
	Start, End int    // of the secret, in bytes
	Line       int    // that it begins on, from 1
	Excerpt    string // its surroundings, with every secret in them masked
}

// Find lists the secrets of a text, in order. They do not overlap.
func Find(text string) []Finding {
	spans := findSpans(text)
	if len(spans) == 0 {
		return nil
	}
	list := make([]Finding, len(spans))
	masked, places := replaceWithMasks(text, spans)
	line, at := 1, 0
	for i, s := range spans {
		line += strings.Count(text[at:s.start], "\n")
		at = s.start
		list[i] = Finding{Rule: s.rule, Start: s.start, End: s.end, Line: line, Excerpt: excerpt(masked, places[i])}
	}
	return list
}

// maxPasses is how often a text is searched. Around a mask a new secret may be found,
// such as the rest of a password.
const maxPasses = 4

// Mask returns a text with every secret replaced by a mask: of the named rules, or of all
// rules when none is named. A text without secrets is returned unchanged.
func Mask(text string, rules ...string) string {
	for range maxPasses {
		spans := findSpans(text)
		if len(rules) > 0 {
			spans = slices.DeleteFunc(spans, func(s span) bool { return !slices.Contains(rules, s.rule) })
		}
		if len(spans) == 0 {
			break
		}
		text = replaceInTextOrJSON(text, spans)
	}
	return text
}

// ReplaceSecret returns a text with each occurrence of secret replaced by with, in every
// escaped form in which [Mask] finds secrets.
func ReplaceSecret(text, secret, with string) string {
	spans := searchInWindows(text, func(t *searchedText) {
		for end := 0; ; {
			at := strings.Index(t.text[end:], secret)
			if at < 0 {
				return
			}
			at += end
			end = at + len(secret)
			t.addSpan("", at, end)
		}
	})
	for i := range spans {
		spans[i].with = with
	}
	return replaceInTextOrJSON(text, spans)
}

// replaceInTextOrJSON replaces secrets by masks; in JSON only inside strings.
func replaceInTextOrJSON(text string, spans []span) string {
	if len(spans) > 0 && isJSON(text) {
		return replaceInJSONStrings(text, spans)
	}
	text, _ = replaceWithMasks(text, spans)
	return text
}

// Rule is one kind of secret.
type Rule struct {
	Name string
	Doc  string // one line
}

// Rules lists the rules.
func Rules() []Rule {
	list := make([]Rule, len(table))
	for i, r := range table {
		list[i] = r.Rule
	}
	return list
}

// span is a secret in a text.
type span struct {
	start, end int
	rule       string
	secret     string // unescaped
	with       string // the replacement; empty: a mask
}

// maskBegin is the prefix of every mask.
const maskBegin = "[masked:"

// HasMask reports whether a text contains a mask.
func HasMask(text string) bool { return strings.Contains(text, maskBegin) }

// minDigest is the least length of a secret whose mask has a hash of the secret.
const minDigest = 16

// mask returns the replacement of a secret.
func (s span) mask() string {
	if s.with != "" {
		return s.with
	}
	hashed := s.rule
	if len(s.secret) >= minDigest {
		hashed += "\x00" + s.secret
	}
	sum := sha256.Sum256([]byte(hashed))
	return maskBegin + s.rule + ":" + hex.EncodeToString(sum[:2]) + "]"
}

// replaceWithMasks replaces secrets by masks, and returns where the masks are.
func replaceWithMasks(text string, spans []span) (masked string, places [][2]int) {
	var b strings.Builder
	b.Grow(len(text))
	at := 0
	for _, s := range spans {
		b.WriteString(text[at:s.start])
		begin := b.Len()
		b.WriteString(s.mask())
		places = append(places, [2]int{begin, b.Len()})
		at = s.end
	}
	b.WriteString(text[at:])
	return b.String(), places
}

// How much of a line an excerpt shows before and after a mask.
const (
	before = 48
	after  = 32
)

// excerpt returns a mask with the text around it on its line.
func excerpt(masked string, place [2]int) string {
	from := strings.LastIndexByte(masked[:place[0]], '\n') + 1
	to := len(masked)
	if n := strings.IndexByte(masked[place[1]:], '\n'); n >= 0 {
		to = place[1] + n
	}
	begin, end := "", ""
	if place[0]-from > before {
		from, begin = place[0]-before, "..."
	}
	if to-place[1] > after {
		to, end = place[1]+after, "..."
	}
	return strings.ToValidUTF8(begin+strings.TrimLeft(masked[from:to], " \t")+end, "")
}
