package settings

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// An edit changes the line of a file on which the setting stands, or adds a line, so that
// comments and order stay. The lines are read one by one, without regard to values that
// span lines. The result is therefore decoded again: when it does not say what it should,
// the document is written anew from its values, which loses comments and nothing else.

// edit is one change of a document.
type edit struct {
	name  string // canonical, or as the file has it when there is no such setting
	set   bool   // false: the setting is removed
	key   Key
	value string // canonical
}

// maxEdits is the most changes that are made line by line, each of which reads the whole
// document; more changes are made together, at the price of the comments.
const maxEdits = 100

// apply makes changes in a section of a document.
func apply(text []byte, section []string, edits []edit) ([]byte, error) {
	doc, err := decode(text)
	if err != nil {
		return nil, err
	}
	after := text
	for _, e := range edits[:min(len(edits), maxEdits)] {
		if e.set {
			after = setLine(after, section, e)
		} else {
			after = removeLines(after, section, e.name)
		}
	}
	if checkEdits(text, after, section, edits) == nil {
		return after, nil
	}
	for _, e := range edits {
		table := tableIn(doc, section)
		remove(table, "", e.name)
		if e.set {
			path := e.key.path()
			tableIn(table, path[:len(path)-1])[path[len(path)-1]] = e.key.tomlValue(e.value)
		}
	}
	if after, err = toml.Marshal(doc); err != nil {
		return nil, err
	}
	return after, checkEdits(text, after, section, edits)
}

// line is one line of a document.
type line struct {
	start, end int      // of the line, with its line feed
	head       bool     // it is the head of a table
	path       []string // of the table, or of the value; nil: it is neither
	own        int      // parts of the path that the line itself has
	value      int      // where the value starts
}

// lines returns the lines of a document.
func lines(text []byte) (list []line) {
	var table []string
	at := 0
	for s := range bytes.Lines(text) {
		l := line{start: at, end: at + len(s)}
		at = l.end
		key, rest, isValue := bytes.Cut(s, []byte("="))
		switch own := bytes.TrimSpace(s); {
		case bytes.HasPrefix(own, []byte("[[")):
			l.head, table = true, []string{"[[]]"} // no setting is in an array of tables
		case bytes.HasPrefix(own, []byte("[")):
			l.head, l.path = true, onlyPath(s)
			table = l.path
		case isValue:
			path := onlyPath(append(bytes.Clone(key), "= 0"...))
			if l.own = len(path); l.own > 0 {
				l.path = slices.Concat(table, path)
			}
			l.value = l.start + len(s) - len(bytes.TrimLeft(rest, " \t"))
		}
		list = append(list, l)
	}
	return list
}

// onlyPath returns the path of the only key of a document; nil when there are none or
// several.
func onlyPath(text []byte) (path []string) {
	var doc map[string]any
	if toml.Unmarshal(text, &doc) != nil {
		return nil
	}
	for len(doc) == 1 {
		for name, value := range doc {
			path = append(path, name)
			doc, _ = value.(map[string]any)
		}
	}
	return path
}

// valueEnd returns where the value on a line ends; 0 when it goes on after the line.
func (l line) valueEnd(text []byte) int {
	const tries = 100
	complete := func(end int) bool { return toml.Unmarshal(text[l.start:end], &map[string]any{}) == nil }
	end := l.start + len(bytes.TrimRight(text[l.start:l.end], " \t\r\n"))
	for at, n := l.value, 0; at < end && n < tries; at, n = at+1, n+1 {
		next := bytes.IndexByte(text[at:end], '#')
		if next < 0 {
			break
		}
		if at += next; complete(at) {
			return l.start + len(bytes.TrimRight(text[l.start:at], " \t"))
		}
	}
	if !complete(end) {
		return 0
	}
	return end
}

// setLine sets a value in a section: in the place of the value that is there, or after the
// values beside it, or under the head of its table, or at the end.
func setLine(text []byte, section []string, e edit) []byte {
	path := slices.Concat(section, e.key.path())
	parent, name := path[:len(path)-1], path[len(path)-1]
	var neighbour, head, firstHead *line
	for _, l := range lines(text) {
		if l.head && firstHead == nil {
			firstHead = &l
		}
		switch {
		case l.path == nil:
		case l.head && samePath(section, l.path, parent):
			head = &l
		case l.head:
		case samePath(section, l.path, path):
			return l.replaceValue(text, tomlText(e.key.tomlValue(e.value)))
		case len(l.path) < len(path) && samePath(section, l.path, path[:len(l.path)]):
			return l.setInline(text, path[len(l.path):], e)
		case len(l.path) == len(path) && samePath(section, l.path[:len(parent)], parent) && l.valueEnd(text) > 0:
			neighbour = &l
		}
	}
	nl := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		nl = "\r\n"
	}
	assign := tomlKey(name) + " = " + tomlText(e.key.tomlValue(e.value)) + nl
	switch {
	case neighbour != nil:
		s := text[neighbour.start:neighbour.end]
		indent := s[:len(s)-len(bytes.TrimLeft(s, " \t"))]
		return insert(text, neighbour.end, string(indent)+joinKeys(neighbour.path[len(path)-neighbour.own:len(parent)], ".")+assign, nl)
	case head != nil:
		return insert(text, head.end, assign, nl)
	case len(parent) == 0 && firstHead != nil:
		return insert(text, commentStart(text, firstHead.start), assign+nl, nl)
	case len(parent) > 0:
		assign = "[" + joinKeys(parent, "") + "]" + nl + assign
		if len(text) > 0 {
			assign = nl + assign
		}
	}
	return insert(text, len(text), assign, nl)
}

// replaceValue returns the text with another value on a line.
func (l line) replaceValue(text []byte, value string) []byte {
	end := l.valueEnd(text)
	if end == 0 {
		return text
	}
	return slices.Concat(text[:l.value], []byte(value), text[end:])
}

// setInline sets a value at a path in the inline table on a line.
func (l line) setInline(text []byte, path []string, e edit) []byte {
	var doc map[string]any
	if end := l.valueEnd(text); end == 0 || toml.Unmarshal(append([]byte("v = "), text[l.value:end]...), &doc) != nil {
		return text
	}
	table, ok := doc["v"].(map[string]any)
	if !ok {
		return text
	}
	remove(table, "", strings.Join(path, "."))
	tableIn(table, path[:len(path)-1])[path[len(path)-1]] = e.key.tomlValue(e.value)
	return l.replaceValue(text, tomlText(table))
}

// insert inserts whole lines at the beginning of a line, or at the end of the text.
func insert(text []byte, at int, with, nl string) []byte {
	if at > 0 && text[at-1] != '\n' {
		with = nl + with
	}
	return slices.Concat(text[:at], []byte(with), text[at:])
}

// commentStart returns where the comment right above a line begins.
func commentStart(text []byte, at int) int {
	for at > 0 {
		above := bytes.LastIndexByte(text[:at-1], '\n') + 1
		if !bytes.HasPrefix(bytes.TrimLeft(text[above:at], " \t"), []byte("#")) {
			break
		}
		at = above
	}
	return at
}

// removeLines returns the text without the lines of a setting.
func removeLines(text []byte, section []string, name string) []byte {
	for _, l := range slices.Backward(lines(text)) {
		if !l.head && l.path != nil && samePath(section, l.path, append(slices.Clip(section), name)) {
			text = slices.Concat(text[:l.start], text[l.end:])
		}
	}
	return text
}

// samePath reports whether two paths that begin with a section name the same setting.
func samePath(section, a, b []string) bool {
	n := len(section)
	return len(a) >= n && len(b) >= n && slices.Equal(a[:n], b[:n]) && fold(strings.Join(a[n:], ".")) == fold(strings.Join(b[n:], "."))
}

// tableIn returns the table at a path of a document. It is made when it is missing.
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

// remove removes a setting from a table, however it is spelled.
func remove(table map[string]any, prefix, name string) {
	for part, value := range table {
		if fold(prefix+part) == fold(name) {
			delete(table, part)
		} else if sub, ok := value.(map[string]any); ok {
			remove(sub, prefix+part+".", name)
		}
	}
}

// checkEdits returns an error when a document differs from the one before in more than
// the edits.
func checkEdits(before, after []byte, section []string, edits []edit) error {
	was, err := valuesByName(before)
	if err != nil {
		return err
	}
	is, err := valuesByName(after)
	if err != nil {
		return err
	}
	for _, e := range edits {
		at := flatName(section, e.name)
		value, there := is[at]
		text, _ := textOf(value)
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

// valuesByName returns the values of a document by section and name.
func valuesByName(text []byte) (map[string]any, error) {
	list, err := leaves(text)
	values := map[string]any{}
	for _, l := range list {
		values[flatName(l.section, l.name())] = l.value
	}
	return values, err
}

func flatName(section []string, name string) string {
	return strings.Join(append(slices.Clone(section), fold(name)), "\x00")
}

// tomlText returns a value as TOML, on one line.
func tomlText(value any) string {
	var b strings.Builder
	if err := toml.NewEncoder(&b).SetTablesInline(true).Encode(map[string]any{"v": value}); err != nil {
		panic("settings: " + err.Error()) // booleans, numbers, texts and tables of them can be encoded
	}
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), "v = "), "\n")
}

// tomlKey returns one part of a key, in quotes where TOML wants them.
func tomlKey(part string) string {
	if strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == "" && part != "" {
		return part
	}
	return tomlText(part)
}

// joinKeys joins the parts of a key, and adds what follows the last one.
func joinKeys(path []string, last string) string {
	var b strings.Builder
	for i, part := range path {
		b.WriteString(tomlKey(part))
		if i < len(path)-1 {
			b.WriteString(".")
		} else {
			b.WriteString(last)
		}
	}
	return b.String()
}
