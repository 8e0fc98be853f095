// Package secrets finds keys, tokens and passwords in text, and masks them.
//
// For most uses: [Mask] gives a text with every secret replaced by a mask, and
// [Find] says where they are. [Rules] lists what is known. [ReplaceSecret] is for one secret that
// the caller has.
//
// A mask is [masked:RULE:HEX]. It is made of the secret alone, so that equal
// secrets have equal masks and a text is masked the same way at any time. HEX is 16
// bits of a hash. Of a key of 128 random bits, as machines make them, it leaves 112
// to be guessed, which is as good as all, and somebody who has another key cannot
// tell whether it fits better than one time in 65,536. A password that somebody
// chose is another matter: with 16 bits of it a list of words could be searched. So
// the mask of a secret of fewer than 16 bytes tells nothing: its HEX is of the rule.
//
// What is promised: masking is repeatable (a masked text stays as it is), takes time
// in proportion to the text, and leaves JSON valid: inside JSON only strings change.
// Secrets are found in the escaped forms of JSON strings too, up to three deep, as
// they are in a call in an answer in a log, and within these in the spellings of URLs
// (%73), of pages (&#115; &quot;) and of programs (\x73). What looks like an example,
// such as sk-..., ${TOKEN} or AKIAIOSFODNN7EXAMPLE, is no secret. What is encoded as a
// whole (base64, another alphabet) is not found.
//
// The package knows text and rules. It knows no storage and no model.
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
	spans := find(text)
	if len(spans) == 0 {
		return nil
	}
	list := make([]Finding, len(spans))
	masked, places := replace(text, spans)
	line, at := 1, 0
	for i, s := range spans {
		line += strings.Count(text[at:s.start], "\n")
		at = s.start
		list[i] = Finding{Rule: s.rule, Start: s.start, End: s.end, Line: line, Excerpt: excerpt(masked, places[i])}
	}
	return list
}

// maxPasses is how often a text is looked through. What a mask leaves behind may
// look like a secret that was not seen before, such as the rest of a password.
const maxPasses = 4

// Mask returns a text with every secret in it replaced by a mask; only what some rules
// find, when they are named. A text without any is returned as it is.
func Mask(text string, rules ...string) string {
	for range maxPasses {
		spans := find(text)
		if len(rules) > 0 {
			spans = slices.DeleteFunc(spans, func(s span) bool { return !slices.Contains(rules, s.rule) })
		}
		if len(spans) == 0 {
			break
		}
		text = replaceAll(text, spans)
	}
	return text
}

// ReplaceSecret returns a text with one secret that is known replaced by what stands for it,
// in every spelling in which [Mask] finds secrets.
func ReplaceSecret(text, secret, with string) string {
	spans := search(text, func(v *view) {
		for end := 0; ; {
			at := strings.Index(v.text[end:], secret)
			if at < 0 {
				return
			}
			at += end
			end = at + len(secret)
			v.found("", at, end)
		}
	})
	for i := range spans {
		spans[i].with = with
	}
	return replaceAll(text, spans)
}

// replaceAll puts masks in the place of secrets, of JSON inside strings only.
func replaceAll(text string, spans []span) string {
	if len(spans) > 0 && isJSON(text) {
		return replaceInJSON(text, spans)
	}
	text, _ = replace(text, spans)
	return text
}

// Rule is one sort of secret.
type Rule struct {
	Name string
	Doc  string // one line
}

// Rules lists what is known.
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
	secret     string // without what escapes it
	with       string // what stands for it; empty: a mask
}

// maskBegin is what every mask begins with.
const maskBegin = "[masked:"

// minDigest is the fewest bytes of a secret whose mask tells it from others.
const minDigest = 16

// mask returns what stands in the place of a secret.
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

// replace puts masks in the place of secrets, and says where they are.
func replace(text string, spans []span) (masked string, places [][2]int) {
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

// excerpt returns a mask with what stands around it on its line.
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
