package settings

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// The text of a file is edited where the value stands, so that comments and
// order stay. Every edit is read back: when the document does not say what it
// should, it is written anew from its values, which loses comments but nothing
// else.

// line is one table head or one `key = value` of a document.
type line struct {
	head       bool // [table]
	path       []string
	start, end int // of the text without what else is on its lines
	value      int // where the value starts
	leafKey    int // where the last part of the key starts
	inline     bool
}

// scan lists the lines of a document, inline tables included. Everything that takes
// longer for a larger document comes after it, and it refuses one that is too large.
func scan(text []byte) ([]line, error) {
	s := scanner{text: text}
	s.parser.Reset(text)
	for s.parser.NextExpression() {
		var err error
		switch e := s.parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			err = s.head(e)
		case unstable.KeyValue:
			err = s.assignment(e, s.table, false)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.lines, s.parser.Error()
}

type scanner struct {
	text   []byte
	parser unstable.Parser
	table  []string // that the keys are in
	lines  []line
	keys   int
}

func (s *scanner) head(e *unstable.Node) error {
	path, first, last := keyPath(e)
	if err := s.count(first, len(path)); err != nil {
		return err
	}
	s.table = path
	if e.Kind == unstable.ArrayTable {
		s.table = []string{"[[]]"} // nothing that is looked for
	}
	end := last + bytes.IndexByte(s.text[last:], ']') + 1
	s.lines = append(s.lines, line{head: true, path: s.table, start: first, end: end})
	return nil
}

func (s *scanner) assignment(e *unstable.Node, table []string, inline bool) error {
	path, first, last := keyPath(e)
	if err := s.count(first, len(table)+len(path)); err != nil {
		return err
	}
	l := line{path: append(table[:len(table):len(table)], path...), start: first, end: int(e.Raw.Offset + e.Raw.Length), inline: inline}
	for it := e.Key(); it.Next(); {
		l.leafKey = int(it.Node().Raw.Offset)
	}
	l.value = last + bytes.IndexByte(s.text[last:], '=') + 1
	for l.value < l.end && (s.text[l.value] == ' ' || s.text[l.value] == '\t') {
		l.value++
	}
	s.lines = append(s.lines, l)
	return s.value(e.Value(), l.path)
}

// value looks for assignments in a value. The path of one in an array leads nowhere.
func (s *scanner) value(v *unstable.Node, path []string) error {
	for it := v.Children(); it.Next(); {
		var err error
		switch n := it.Node(); n.Kind {
		case unstable.KeyValue:
			err = s.assignment(n, path, true)
		case unstable.Array, unstable.InlineTable:
			if len(path) == maxDepth {
				return &limitError{0, fmt.Sprintf("values are nested more than %d deep", maxDepth)}
			}
			err = s.value(n, append(path[:len(path):len(path)], "[]"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// count takes in one more key, or the head of a table, that has so many parts.
func (s *scanner) count(at, parts int) error {
	s.keys++
	what := ""
	switch {
	case parts > maxDepth:
		what = fmt.Sprintf("a key has more than %d parts", maxDepth)
	case s.keys > maxKeys:
		what = fmt.Sprintf("there are more than %d keys and tables", maxKeys)
	default:
		return nil
	}
	return &limitError{1 + bytes.Count(s.text[:at], []byte("\n")), what}
}

// limitError says that a document is too large to be read.
type limitError struct {
	line int // 0: it is not known
	what string
}

func (e *limitError) Error() string { return e.what }

// keyPath is the parts of a key and where they begin and end in the text.
func keyPath(e *unstable.Node) (path []string, first, last int) {
	first = -1
	for it := e.Key(); it.Next(); {
		n := it.Node()
		path = append(path, string(n.Data))
		if first < 0 {
			first = int(n.Raw.Offset)
		}
		last = int(n.Raw.Offset + n.Raw.Length)
	}
	return path, first, last
}

func samePath(a, b []string) bool { return fold(strings.Join(a, ".")) == fold(strings.Join(b, ".")) }

// lineOf is the number of the line where a value stands; 0 when it is not found.
func lineOf(text []byte, lines []line, of leaf) int {
	path := slices.Concat(of.section, of.path)
	for _, l := range lines {
		if !l.head && slices.Equal(l.path, path) {
			return 1 + bytes.Count(text[:l.start], []byte("\n"))
		}
	}
	return 0
}

// pathOf is where a setting stands in a document.
func pathOf(name string) []string {
	if k := familyOf(name); k != nil {
		before, after, _ := k.family()
		path := append(strings.Split(strings.TrimSuffix(before, "."), "."), name[len(before):len(name)-len(after)])
		if after != "" {
			path = append(path, after[1:])
		}
		return path
	}
	return strings.Split(name, ".")
}

// edit is one change of a document.
type edit struct {
	name  string // canonical, or as a file has it when there is no such setting
	set   bool   // else it is taken out
	key   Key
	value string // canonical
}

// maxEdits is the most changes that are made one by one, each of which reads all of the
// document; more are made together, at the price of its comments.
const maxEdits = 100

// apply makes changes in a section of a document.
func apply(text []byte, section []string, edits []edit) ([]byte, error) {
	if _, _, err := document(text); err != nil {
		return nil, err
	}
	if len(edits) > maxEdits {
		return rewrite(text, section, edits)
	}
	after := text
	for _, e := range edits {
		lines, err := scan(after)
		if err != nil {
			break
		}
		if e.set {
			after = place(after, lines, section, pathOf(e.key.Name), tomlValue(e.key.literal(e.value)))
		} else {
			after = takeOut(after, lines, section, e.name)
		}
	}
	if onlyDiffers(text, after, section, edits) == nil {
		return after, nil
	}
	return rewrite(text, section, edits)
}

// place writes `key = value` where it belongs: over the value that is there, or
// after its neighbours, or under the head of its table, or at the end.
func place(text []byte, lines []line, section, path []string, value string) []byte {
	neighbour, head, firstHead := -1, -1, -1
	for i, l := range lines {
		if l.head && firstHead < 0 {
			firstHead = i
		}
		var ok bool
		if l.path, ok = within(section, l.path); !ok {
			continue
		}
		switch {
		case !l.head && samePath(l.path, path):
			return splice(text, l.value, l.end, value)
		case !l.head && !l.inline && len(l.path) == len(path) && samePath(l.path[:len(path)-1], path[:len(path)-1]):
			neighbour = i
		case l.head && samePath(l.path, path[:len(path)-1]):
			head = i
		}
	}
	nl := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		nl = "\r\n"
	}
	assign := tomlKey(path[len(path)-1]) + " = " + value + nl
	switch {
	case neighbour >= 0:
		l := lines[neighbour]
		return insert(text, l.end, string(text[lineStart(text, l.start):l.leafKey])+assign, nl)
	case head >= 0:
		return insert(text, lines[head].end, assign, nl)
	case len(section)+len(path) == 1 && firstHead >= 0:
		at := blockStart(text, lineStart(text, lines[firstHead].start))
		return splice(text, at, at, assign+nl)
	}
	var b strings.Builder
	if table := slices.Concat(section, path[:len(path)-1]); len(table) > 0 {
		if len(text) > 0 {
			b.WriteString(nl)
		}
		b.WriteString("[" + joinKeys(table) + "]" + nl)
	}
	b.WriteString(assign)
	return insert(text, len(text), b.String(), nl)
}

func splice(text []byte, from, to int, with string) []byte {
	return bytes.Join([][]byte{text[:from], []byte(with), text[to:]}, nil)
}

// insert puts whole lines after the line that holds at.
func insert(text []byte, at int, with, nl string) []byte {
	at = lineEnd(text, at)
	if at > 0 && text[at-1] != '\n' {
		with = nl + with
	}
	return splice(text, at, at, with)
}

func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

func lineEnd(text []byte, at int) int {
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}

// blockStart is where the comment right above a line begins.
func blockStart(text []byte, at int) int {
	for at > 0 {
		above := lineStart(text, at-1)
		if !bytes.HasPrefix(bytes.TrimLeft(text[above:at], " \t"), []byte("#")) {
			break
		}
		at = above
	}
	return at
}

// takeOut gives the text without the lines of a setting.
func takeOut(text []byte, lines []line, section []string, name string) []byte {
	for _, l := range slices.Backward(lines) {
		if path, ok := within(section, l.path); ok && !l.head && !l.inline && fold(strings.Join(path, ".")) == fold(name) {
			text = splice(text, lineStart(text, l.start), lineEnd(text, l.end), "")
		}
	}
	return text
}

// within gives the rest of a path that begins with a section.
func within(section, path []string) ([]string, bool) {
	if len(path) < len(section) || !slices.Equal(path[:len(section)], section) {
		return nil, false
	}
	return path[len(section):], true
}

// rewrite makes the changes in the values of a document and writes it anew, which loses
// its comments.
func rewrite(text []byte, section []string, edits []edit) ([]byte, error) {
	doc, _, err := document(text)
	if err != nil {
		return nil, err
	}
	for _, e := range edits {
		at := tableIn(doc, section)
		remove(at, nil, e.name)
		if e.set {
			path := pathOf(e.key.Name)
			tableIn(at, path[:len(path)-1])[path[len(path)-1]] = e.key.literal(e.value)
		}
	}
	after, err := toml.Marshal(doc)
	if err != nil {
		return nil, err
	}
	return after, onlyDiffers(text, after, section, edits)
}

// tableIn is the table at a path of a document, made where it is missing.
func tableIn(doc map[string]any, path []string) map[string]any {
	for _, name := range path {
		sub, ok := doc[name].(map[string]any)
		if !ok {
			sub = map[string]any{}
			doc[name] = sub
		}
		doc = sub
	}
	return doc
}

func remove(doc map[string]any, path []string, name string) {
	for part, value := range doc {
		here := append(path[:len(path):len(path)], part)
		if fold(strings.Join(here, ".")) == fold(name) {
			delete(doc, part)
		} else if sub, ok := value.(map[string]any); ok {
			remove(sub, here, name)
		}
	}
}

// onlyDiffers checks that a document differs from the one before in what was changed,
// and in nothing else.
func onlyDiffers(before, after []byte, section []string, edits []edit) error {
	was, err := flat(before)
	if err != nil {
		return err
	}
	is, err := flat(after)
	if err != nil {
		return err
	}
	for _, e := range edits {
		at := flatKey(section, e.name)
		value, there := is[at]
		text, _ := written(value)
		if e.set {
			text, _ = e.key.parse(text)
		}
		if there != e.set || text != e.value {
			return fmt.Errorf("the file cannot be edited so that it sets %s: edit it by hand", e.name)
		}
		delete(was, at)
		delete(is, at)
	}
	if !reflect.DeepEqual(was, is) {
		return errors.New("the file cannot be edited without changing other settings: edit it by hand")
	}
	return nil
}

// flat is the values of a document by section and name.
func flat(text []byte) (map[string]any, error) {
	doc, _, err := document(text)
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	for _, l := range leaves(doc) {
		values[flatKey(l.section, l.name())] = l.value
	}
	return values, nil
}

func flatKey(section []string, name string) string {
	return strings.Join(append(slices.Clone(section), fold(name)), "\x00")
}

func tomlValue(value any) string {
	b, err := toml.Marshal(map[string]any{"v": value})
	if err != nil {
		panic("settings: " + err.Error()) // bools, numbers and texts can be written
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(b), "v = "), "\n")
}

// tomlKey is one part of a key, quoted where it has to be.
func tomlKey(part string) string {
	for i := range len(part) {
		if c := part[i]; !isAlnum(c) && c != '-' && c != '_' {
			return tomlValue(part)
		}
	}
	return part
}

func joinKeys(path []string) string {
	parts := make([]string, len(path))
	for i, part := range path {
		parts[i] = tomlKey(part)
	}
	return strings.Join(parts, ".")
}
