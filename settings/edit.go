package settings

import (
	"bytes"
	"fmt"
	"reflect"
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

// scan lists the lines of a document, inline tables included.
func scan(text []byte) ([]line, error) {
	var lines []line
	var table []string
	var p unstable.Parser
	p.Reset(text)
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			path, first, last := keyPath(e)
			table = path
			if e.Kind == unstable.ArrayTable {
				table = []string{"[[]]"} // nothing that is looked for
			}
			end := last + bytes.IndexByte(text[last:], ']') + 1
			lines = append(lines, line{head: true, path: table, start: first, end: end})
		case unstable.KeyValue:
			lines = appendValue(lines, text, table, e, false)
		}
	}
	return lines, p.Error()
}

func appendValue(lines []line, text []byte, table []string, e *unstable.Node, inline bool) []line {
	path, first, last := keyPath(e)
	l := line{path: append(table[:len(table):len(table)], path...), start: first, end: int(e.Raw.Offset + e.Raw.Length), inline: inline}
	for it := e.Key(); it.Next(); {
		l.leafKey = int(it.Node().Raw.Offset)
	}
	l.value = last + bytes.IndexByte(text[last:], '=') + 1
	for l.value < l.end && (text[l.value] == ' ' || text[l.value] == '\t') {
		l.value++
	}
	lines = append(lines, l)
	if v := e.Value(); v.Kind == unstable.InlineTable {
		for it := v.Children(); it.Next(); {
			if n := it.Node(); n.Kind == unstable.KeyValue {
				lines = appendValue(lines, text, l.path, n, true)
			}
		}
	}
	return lines
}

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
func lineOf(text []byte, path []string) int {
	lines, err := scan(text)
	if err != nil {
		return 0
	}
	for _, l := range lines {
		if !l.head && samePath(l.path, path) {
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

// setText gives the text with one value set.
func setText(text []byte, key Key, value string) ([]byte, error) {
	lines, err := scan(text)
	if err != nil {
		return nil, err
	}
	path := pathOf(key.Name)
	after := place(text, lines, path, tomlValue(key.literal(value)))
	return checked(text, after, key.Name, func(doc map[string]any) {
		for _, name := range path[:len(path)-1] {
			sub, ok := doc[name].(map[string]any)
			if !ok {
				sub = map[string]any{}
				doc[name] = sub
			}
			doc = sub
		}
		doc[path[len(path)-1]] = key.literal(value)
	}, value)
}

// place writes `key = value` where it belongs: over the value that is there, or
// after its neighbours, or under the head of its table, or at the end.
func place(text []byte, lines []line, path []string, value string) []byte {
	neighbour, head, firstHead := -1, -1, -1
	for i, l := range lines {
		switch {
		case !l.head && samePath(l.path, path):
			return splice(text, l.value, l.end, value)
		case !l.head && !l.inline && len(l.path) == len(path) && samePath(l.path[:len(path)-1], path[:len(path)-1]):
			neighbour = i
		case l.head && samePath(l.path, path[:len(path)-1]):
			head = i
		}
		if l.head && firstHead < 0 {
			firstHead = i
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
	case len(path) == 1 && firstHead >= 0:
		at := blockStart(text, lineStart(text, lines[firstHead].start))
		return splice(text, at, at, assign+nl)
	}
	var b strings.Builder
	if len(path) > 1 {
		if len(text) > 0 {
			b.WriteString(nl)
		}
		b.WriteString("[" + joinKeys(path[:len(path)-1]) + "]" + nl)
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

// unsetText gives the text without a setting.
func unsetText(text []byte, name string) ([]byte, error) {
	lines, err := scan(text)
	if err != nil {
		return nil, err
	}
	after := text
	for i := len(lines) - 1; i >= 0; i-- {
		if l := lines[i]; !l.head && !l.inline && fold(strings.Join(l.path, ".")) == fold(name) {
			after = splice(after, lineStart(after, l.start), lineEnd(after, l.end), "")
		}
	}
	return checked(text, after, name, func(doc map[string]any) { remove(doc, nil, name) }, "")
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

// checked gives after when it differs from before in one setting only, which
// has the value that was wanted (empty: none); else before with its values
// changed by edit and written anew.
func checked(before, after []byte, name string, edit func(doc map[string]any), want string) ([]byte, error) {
	if differs := onlyDiffers(before, after, name, want); differs == nil {
		return after, nil
	}
	var doc map[string]any
	if err := toml.Unmarshal(before, &doc); err != nil {
		return nil, err
	}
	remove(doc, nil, name)
	edit(doc)
	after, err := toml.Marshal(doc)
	if err != nil {
		return nil, err
	}
	return after, onlyDiffers(before, after, name, want)
}

func onlyDiffers(before, after []byte, name, want string) error {
	was, is := map[string]any{}, map[string]any{}
	for text, flat := range map[*[]byte]map[string]any{&before: was, &after: is} {
		var doc map[string]any
		if err := toml.Unmarshal(*text, &doc); err != nil {
			return err
		}
		for _, l := range leaves(doc) {
			flat[fold(strings.Join(l.path, "."))] = l.value
		}
	}
	value, _ := written(is[fold(name)])
	if key, err := Find(name); err == nil && want != "" {
		value, _ = key.parse(value)
	}
	delete(was, fold(name))
	delete(is, fold(name))
	if value != want || !reflect.DeepEqual(was, is) {
		return fmt.Errorf("the file cannot be edited without changing more than %s: edit it by hand", name)
	}
	return nil
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
