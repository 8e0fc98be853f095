package diff

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// Span is a run of text that one side has, or both. The texts of Same and
// Remove, joined, are A byte for byte; those of Same and Add are B.
type Span struct {
	Op   Op
	Text string
}

// TextOptions is how texts are compared.
type TextOptions struct {
	Words   bool          // by words, where lines differ; else by whole lines
	Timeout time.Duration // how long to look for the best way; 0: a tenth of a second
}

const (
	defaultTimeout = 100 * time.Millisecond
	maxCompared    = 8 << 20 // most bytes of both sides that are looked at closely
	maxExact       = 6000    // most tokens of both sides that are compared exactly
)

// Texts compares two texts. A Remove comes before the Add that takes its place,
// and no two spans beside each other have the same Op.
func Texts(a, b string, o TextOptions) []Span {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	c := &comparer{deadline: time.Now().Add(o.Timeout)}
	head, tail := commonLineBytes(a, b)
	c.addSame(a[:head])
	c.compareLines(a[head:len(a)-tail], b[head:len(b)-tail], o.Words)
	c.addSame(a[len(a)-tail:])
	c.flush()
	if o.Words {
		return mergeAcrossBlanks(c.spans)
	}
	return c.spans
}

// commonLineBytes returns how many bytes of whole lines both texts begin with, and end
// with.
func commonLineBytes(a, b string) (head, tail int) {
	n := min(len(a), len(b))
	for head < n && a[head] == b[head] {
		head++
	}
	if head == len(a) && head == len(b) {
		return head, 0
	}
	head = strings.LastIndexByte(a[:head], '\n') + 1
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	// The line that the common end begins in may begin differently.
	end := a[len(a)-tail:]
	at := strings.IndexByte(end, '\n') + 1
	if at == 0 {
		return head, 0
	}
	return head, len(end) - at
}

// comparer gathers spans.
type comparer struct {
	deadline       time.Time
	spans          []Span
	removed, added strings.Builder
}

func (c *comparer) addSame(text string) {
	if text == "" {
		return
	}
	c.flush()
	if n := len(c.spans); n > 0 && c.spans[n-1].Op == Same {
		c.spans[n-1].Text += text
		return
	}
	c.spans = append(c.spans, Span{Same, text})
}

// flush ends a run of changes.
func (c *comparer) flush() {
	if c.removed.Len() > 0 {
		c.spans = append(c.spans, Span{Remove, c.removed.String()})
		c.removed.Reset()
	}
	if c.added.Len() > 0 {
		c.spans = append(c.spans, Span{Add, c.added.String()})
		c.added.Reset()
	}
}

// addDifferent adds what is on one side only.
func (c *comparer) addDifferent(a, b []string) {
	for _, s := range a {
		c.removed.WriteString(s)
	}
	for _, s := range b {
		c.added.WriteString(s)
	}
}

func (c *comparer) compareLines(a, b string, words bool) {
	if len(a)+len(b) > maxCompared {
		c.addDifferent([]string{a}, []string{b})
		return
	}
	if !words {
		c.compareTokens(splitLines(a), splitLines(b))
		return
	}
	lines := &comparer{deadline: c.deadline}
	lines.compareTokens(splitLines(a), splitLines(b))
	lines.flush()
	for i := 0; i < len(lines.spans); i++ {
		switch s := lines.spans[i]; {
		case s.Op == Same:
			c.addSame(s.Text)
		case s.Op == Remove && i+1 < len(lines.spans) && lines.spans[i+1].Op == Add:
			i++
			c.compareTokens(splitWords(s.Text), splitWords(lines.spans[i].Text))
		case s.Op == Remove:
			c.addDifferent([]string{s.Text}, nil)
		default:
			c.addDifferent(nil, []string{s.Text})
		}
	}
}

// compareTokens compares two lists of tokens: the ends that both have are cut off; what
// is long is cut at tokens that are there once on each side; what is left is
// compared exactly while there is time.
func (c *comparer) compareTokens(a, b []string) {
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	c.addSame(strings.Join(a[:head], ""))
	a, b = a[head:], b[head:]
	tail := 0
	for tail < min(len(a), len(b)) && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	end := a[len(a)-tail:]
	a, b = a[:len(a)-tail], b[:len(b)-tail]
	if len(a)+len(b) <= maxExact {
		c.compareExact(a, b)
	} else {
		i, j := 0, 0
		for _, p := range append(anchors(a, b, func(s string) string { return s }), pair{len(a), len(b)}) {
			c.compareExact(a[i:p.a], b[j:p.b])
			if p.a < len(a) {
				c.addSame(a[p.a])
			}
			i, j = p.a+1, p.b+1
		}
	}
	c.addSame(strings.Join(end, ""))
}

// compareExact finds the fewest changes. Every token becomes a rune of its own, so that
// the library, which knows only runes, sees no byte of the text.
func (c *comparer) compareExact(a, b []string) {
	left := time.Until(c.deadline)
	if len(a) == 0 || len(b) == 0 || len(a)+len(b) > maxExact || left <= 0 {
		c.addDifferent(a, b)
		return
	}
	names := map[string]rune{}
	asRunes := func(tokens []string) []rune {
		runes := make([]rune, len(tokens))
		for i, t := range tokens {
			if _, ok := names[t]; !ok {
				names[t] = rune(len(names) + 1) // below the surrogates: maxExact
			}
			runes[i] = names[t]
		}
		return runes
	}
	d := diffmatchpatch.New()
	d.DiffTimeout = left
	for _, part := range d.DiffMainRunes(asRunes(a), asRunes(b), false) {
		n := utf8.RuneCountInString(part.Text)
		switch part.Type {
		case diffmatchpatch.DiffEqual:
			c.addSame(strings.Join(a[:n], ""))
			a, b = a[n:], b[n:]
		case diffmatchpatch.DiffDelete:
			c.addDifferent(a[:n], nil)
			a = a[n:]
		case diffmatchpatch.DiffInsert:
			c.addDifferent(nil, b[:n])
			b = b[n:]
		}
	}
}

// splitLines cuts a text after every line feed.
func splitLines(text string) []string {
	return strings.SplitAfter(text, "\n")
}

// splitWords cuts a text into words, runs of blanks, and anything else rune by
// rune.
func splitWords(text string) []string {
	var words []string
	class := func(s string) (kind, size int) {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == '\n':
			return 0, size
		case unicode.IsSpace(r):
			return 1, size
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			return 2, size
		}
		return 0, size
	}
	for text != "" {
		kind, end := class(text)
		for kind != 0 && end < len(text) {
			next, size := class(text[end:])
			if next != kind {
				break
			}
			end += size
		}
		words, text = append(words, text[:end]), text[end:]
	}
	return words
}

// mergeAcrossBlanks joins replacements that only blanks separate: a phrase that was
// rewritten is one change, not one for each word.
func mergeAcrossBlanks(spans []Span) []Span {
	c := &comparer{}
	replaced := func(i int) bool {
		return i > 0 && i < len(spans) && spans[i].Op == Add && spans[i-1].Op == Remove
	}
	for i, s := range spans {
		switch {
		case s.Op == Remove:
			c.removed.WriteString(s.Text)
		case s.Op == Add:
			c.added.WriteString(s.Text)
		case replaced(i-1) && replaced(i+2) && strings.Trim(s.Text, " \t") == "":
			c.removed.WriteString(s.Text)
			c.added.WriteString(s.Text)
		default:
			c.addSame(s.Text)
		}
	}
	c.flush()
	return c.spans
}
