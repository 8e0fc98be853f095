package settings

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// This file changes settings in the text of a TOML file without losing its comments and order. An
// edit replaces the bytes of one value, removes its line, or inserts a line. The TOML parser
// returns the positions of all keys and values (parseExpressions); setValue and removeValues
// change the text at these positions. Afterwards the result is decoded and compared with the
// values before (checkEdits): if it differs in anything but the edits, the file is not written.

// edit is one change of a document.
type edit struct {
	name  string // canonical, or as the file has it when there is no such setting
	set   bool   // false: the setting is removed
	key   Key
	value string // canonical
}

// newSetEdit returns the edit that sets a value. name and value may have any accepted spelling.
func newSetEdit(name, value string) (edit, error) {
	key, err := Find(name)
	if err == nil {
		value, err = key.Parse(value)
	}
	return edit{name: key.Name, set: true, key: key, value: value}, err
}

// maxEdits is the largest number of settings that are changed together. Each edit parses the whole
// document.
const maxEdits = 500

// applyEdits applies edits to a section of a document.
func applyEdits(text []byte, section []string, edits []edit) ([]byte, error) {
	was, err := valuesByName(text)
	if err == nil && len(edits) > maxEdits {
		err = fmt.Errorf("%d settings would change; at most %d can be changed at once", len(edits), maxEdits)
	}
	if err != nil {
		return nil, err
	}
	for _, e := range edits {
		if e.set {
			text = setValue(text, section, e)
		} else {
			text = removeValues(text, section, e.name)
		}
	}
	return text, checkEdits(was, text, section, edits)
}

// expression is a key with its value, or the header of a table, with its position in a document.
type expression struct {
	path          []string // of the value, or of the table
	ownParts      int      // parts of the path that stand in the expression itself
	start, end    int      // of the expression; the end of a header is that of its last key
	valueStart    int      // where the value starts
	isHeader      bool     // of a table
	inInlineTable bool
	isInlineTable bool // the value is one
}

// parseExpressions returns the expressions of a valid document, including those in inline tables.
func parseExpressions(text []byte) (list []expression) {
	var table []string
	var add func(n *unstable.Node, above []string, inline bool)
	add = func(n *unstable.Node, above []string, inline bool) {
		x := expression{path: slices.Clip(above), inInlineTable: inline}
		for keys := n.Key(); keys.Next(); x.ownParts++ {
			key := keys.Node()
			if x.ownParts == 0 {
				x.start = int(key.Raw.Offset)
			}
			x.path, x.end = append(x.path, string(key.Data)), int(key.Raw.Offset+key.Raw.Length)
		}
		if n.Kind != unstable.KeyValue {
			x.isHeader = true
			list = append(list, x)
			return
		}
		afterSign := x.end + bytes.IndexByte(text[x.end:], '=') + 1
		x.valueStart = len(text) - len(bytes.TrimLeft(text[afterSign:], " \t"))
		x.end = int(n.Raw.Offset + n.Raw.Length)
		x.isInlineTable = n.Value().Kind == unstable.InlineTable
		list = append(list, x)
		if x.isInlineTable {
			for members := n.Value().Children(); members.Next(); {
				add(members.Node(), x.path, true)
			}
		}
	}
	p := unstable.Parser{}
	p.Reset(text)
	for p.NextExpression() {
		n := p.Expression()
		if n.Kind == unstable.KeyValue {
			add(n, table, false)
			continue
		}
		add(n, nil, false)
		head := &list[len(list)-1]
		if n.Kind == unstable.ArrayTable {
			head.path = []string{"[[]]"} // no setting is in an array of tables
		}
		table = head.path
	}
	return list
}

// lineStart returns the start of the line at a position, and nextLineStart that of the line after
// it, or the end of the text.
func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

func nextLineStart(text []byte, at int) int {
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}

// valuePosition is where a value of a section is or belongs in a document. A field that is nil: there
// is no such expression.
type valuePosition struct {
	present     *expression // the value itself
	inline      *expression // the inline table that it belongs to
	neighbour   *expression // another value of its table
	tableHeader *expression // the header of its table
	firstHeader *expression // the first header of the document
	repeated    bool        // the value is there under several spellings, or as a table
}

// findValueOrInsertionPoint returns where the value with a path is, or where it can be inserted. path
// begins with the section. mayBeTable means that the value is a JSON object, which may also be there
// as a table.
func findValueOrInsertionPoint(text []byte, section, path []string, mayBeTable bool) (at valuePosition) {
	parent := path[:len(path)-1]
	isAt := func(a, b []string) bool {
		return foldedKeyOfFullPath(a, len(section)) == foldedKeyOfFullPath(b, len(section))
	}
	for _, x := range parseExpressions(text) {
		if x.isHeader && at.firstHeader == nil {
			at.firstHeader = &x
		}
		switch n := min(len(x.path), len(path)); {
		case at.present != nil && x.start < at.present.end: // a member of the present value
		case x.isHeader && isAt(x.path, parent):
			at.tableHeader = &x
		case at.present == nil && !x.isHeader && isAt(x.path, path):
			at.present = &x
		case !x.isHeader && isAt(x.path, path), mayBeTable && isAt(x.path[:n], path):
			at.repeated = true
			return at
		case x.isInlineTable && isAt(x.path, path[:n]):
			at.inline = &x
		case !x.isHeader && len(x.path) == len(path) && isAt(x.path[:n-1], parent):
			at.neighbour = &x
		}
	}
	return at
}

// setValue sets a value in a section. It replaces the present value, or else inserts the value
// into its inline table, after another value of its table, below the header of its table, or at
// the end of the text. When the value is there under several spellings, or as a table, it removes
// all of them and inserts the new one.
func setValue(text []byte, section []string, e edit) []byte {
	path := slices.Concat(section, e.key.tomlPath())
	parent := path[:len(path)-1]
	value := " = " + tomlText(e.key.tomlValue(e.value))
	at := findValueOrInsertionPoint(text, section, path, e.key.Type == JSON)
	if at.repeated {
		return setValue(removeValues(text, section, e.name), section, e)
	}
	if at.present != nil {
		return slices.Concat(text[:at.present.valueStart], []byte(value[len(" = "):]), text[at.present.end:])
	}
	nl := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		nl = "\r\n"
	}
	assign := dottedKey(path[len(parent):]) + value + nl
	switch {
	case at.inline != nil:
		assign = " " + dottedKey(path[len(at.inline.path):]) + value
		rest := text[at.inline.valueStart+1:]
		if !bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte("}")) {
			assign += "," // TOML 1.0 allows none before the brace
		}
		return slices.Concat(text[:at.inline.valueStart+1], []byte(assign), rest)
	case at.neighbour != nil:
		indent := text[lineStart(text, at.neighbour.start):at.neighbour.start]
		assign = string(indent) + dottedKey(path[len(path)-at.neighbour.ownParts:]) + value + nl
		return insertLines(text, nextLineStart(text, at.neighbour.end), assign, nl)
	case at.tableHeader != nil:
		return insertLines(text, nextLineStart(text, at.tableHeader.end), assign, nl)
	case len(parent) == 0 && at.firstHeader != nil:
		return insertLines(text, commentBlockStart(text, lineStart(text, at.firstHeader.start)), assign+nl, nl)
	case len(parent) > 0:
		assign = "[" + dottedKey(parent) + "]" + nl + assign
		if len(text) > 0 {
			assign = nl + assign
		}
	}
	return insertLines(text, len(text), assign, nl)
}

// insertLines inserts whole lines at the beginning of a line, or at the end of the text.
func insertLines(text []byte, at int, lines, nl string) []byte {
	if at > 0 && text[at-1] != '\n' {
		lines = nl + lines
	}
	return slices.Concat(text[:at], []byte(lines), text[at:])
}

// commentBlockStart returns the start of the comment lines directly above the line at a position,
// or at itself.
func commentBlockStart(text []byte, at int) int {
	for at > 0 {
		above := lineStart(text, at-1)
		if !bytes.HasPrefix(bytes.TrimLeft(text[above:at], " \t"), []byte("#")) {
			break
		}
		at = above
	}
	return at
}

// removeValues returns the text without the values of a setting, and without the table of a JSON
// object. It removes whole lines; in an inline table, it removes each value and the comma after
// it, or the comma before the last value.
func removeValues(text []byte, section []string, name string) []byte {
	key, _ := lookup(name)
	name = foldedKey(section, name)
	var kept []byte
	at := 0 // what comes before it is kept or removed
	for _, x := range parseExpressions(text) {
		own := foldedKeyOfFullPath(x.path, len(section))
		isPart := key.Type == JSON && strings.HasPrefix(own+".", name+".")
		if x.start < at || !isPart && (x.isHeader || own != name) {
			continue
		}
		start, end := lineStart(text, x.start), nextLineStart(text, x.end)
		if x.inInlineTable {
			rest, more := bytes.CutPrefix(bytes.TrimLeft(text[x.end:], " \t"), []byte(","))
			start, end = x.start, len(text)-len(bytes.TrimLeft(rest, " \t"))
			if kept = append(kept, text[at:start]...); !more {
				kept = bytes.TrimSuffix(bytes.TrimRight(kept, " \t"), []byte(","))
			}
			at = end
			continue
		}
		kept, at = append(kept, text[at:start]...), end
	}
	return append(kept, text[at:]...)
}

// checkEdits returns an error if the edited document differs from the values before in anything
// but the edits.
func checkEdits(before map[string]any, after []byte, section []string, edits []edit) error {
	before = maps.Clone(before)
	is, err := valuesByName(after)
	if err != nil {
		return err
	}
	for _, e := range edits {
		at := foldedKey(section, e.name)
		value, there := is[at]
		text, _ := valueTextOrJSON(value)
		if e.set {
			text, _ = e.key.parse(text)
		}
		if there != e.set || text != e.value {
			return fmt.Errorf("the file cannot be edited so that it sets %s: edit it by hand", e.name)
		}
		delete(before, at)
		delete(is, at)
	}
	if fmt.Sprintf("%#v", before) != fmt.Sprintf("%#v", is) { // a NaN is equal to itself
		return errors.New("the file cannot be edited without changing other settings: edit it by hand")
	}
	return nil
}

// valuesByName returns the values of a document by section and name.
func valuesByName(text []byte) (map[string]any, error) {
	list, err := decodeSortedValues(text)
	values := map[string]any{}
	for _, l := range list {
		values[foldedKey(l.section, l.name())] = l.value
	}
	return values, err
}

// foldedKey returns a map key for a name in a section. All spellings of a name have the same key.
func foldedKey(section []string, name string) string {
	return strings.Join(append(slices.Clone(section), foldNameExceptChosenPart(name)), "\x00")
}

// foldNameExceptChosenPart is foldName, but only lower-cases the part of a name that a person chooses:
// gpt4 and gpt-4 are two models. A name that ends with the chosen part, such as that of the table
// price.gpt-4, is folded in the same way.
func foldNameExceptChosenPart(name string) string {
	folded := foldName(name)
	for _, k := range table {
		before, after, many := k.familyAffixes()
		n := strings.Count(before, ".")
		parts := strings.SplitN(strings.TrimSpace(name), ".", n+1)
		if !many || len(parts) <= n || foldName(strings.Join(parts[:n], ".")+".") != foldName(before) {
			continue
		}
		chosen := parts[n]
		folded = foldName(before) + strings.ToLower(chosen)
		if at := strings.LastIndexByte(chosen, '.'); after != "" && at >= 0 && foldName(chosen[at:]) == foldName(after) {
			return foldName(before) + strings.ToLower(chosen[:at]) + foldName(after)
		}
	}
	return folded
}

// foldedKeyOfFullPath returns the foldedKey of a path from the root of the document, of which the
// first sectionLen elements are the section.
func foldedKeyOfFullPath(fullPath []string, sectionLen int) string {
	n := min(sectionLen, len(fullPath))
	return foldedKey(fullPath[:n], strings.Join(fullPath[n:], "."))
}

// tomlText returns a value as TOML, on one line.
func tomlText(value any) string {
	b, err := toml.Marshal(map[string]any{"v": value})
	if err != nil {
		panic("settings: " + err.Error()) // booleans, numbers and texts can be encoded
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(b), "v = "), "\n")
}

// dottedKey returns the dotted key of a path, with its parts in quotes where TOML wants them.
func dottedKey(path []string) string {
	parts := make([]string, len(path))
	for i, part := range path {
		parts[i] = part
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			parts[i] = tomlText(part)
		}
	}
	return strings.Join(parts, ".")
}
