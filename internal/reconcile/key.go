package reconcile

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/objects"
)

// unit is the part of one block that a key covers.
type unit struct {
	hash  objects.ID // of everything but text
	words string     // the text of a model, without white space
	lines string     // any other text, without empty lines
	loose bool       // the order among units of this sort does not count
}

// unitOf returns the unit of a block, and whether keys count it. calls holds the hashes
// of the calls so far by id; they tell results apart.
func unitOf(role content.Role, b content.Block, calls map[string]objects.ID) (u unit, counts bool) {
	switch b := b.(type) {
	case content.Text:
		if role == content.RoleAssistant {
			u.words = strings.Join(strings.Fields(b.Text), "")
			return u, u.words != ""
		}
		u.lines = withoutEmptyLines(b.Text)
		return u, u.lines != ""
	case content.Reasoning:
		text := strings.TrimSpace(b.String())
		if text == "" {
			text = b.Form().Seal.Data
		}
		return unit{hash: digest("reasoning", text)}, false
	case content.ToolCall:
		u = unit{hash: digest("call", b.Name, canonical(b.Arguments)), loose: true}
		calls[b.CallID] = u.hash
		return u, !b.Server
	case content.ToolResult:
		call := calls[b.CallID]
		return unit{hash: digest("result", string(call[:]), resultWords(b)), loose: true}, !b.Server
	case content.Media:
		return unit{hash: digest("media", b.URL, b.Data)}, true
	case content.Native:
		return unit{hash: digest("native", canonical(b.JSON))}, role != content.RoleAssistant
	}
	return u, false
}

// withoutEmptyLines returns a text without empty lines and without white space at its
// ends, so that joined texts have the same lines as their parts.
func withoutEmptyLines(text string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line = strings.TrimRightFunc(line, unicode.IsSpace); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// trail is a conversation up to some block. What one side says in a row counts
// together, however it is cut into messages and blocks.
type trail struct {
	before objects.ID // key of all that was said before the row
	role   content.Role
	row    []byte    // hashes of what counts in order
	lines  []byte    // text after that, as lines
	words  []byte    // of the model
	loose  [4]uint64 // sum of the hashes of what counts in any order
}

// add goes on by a block and gives the key.
func (t *trail) add(role content.Role, u unit) objects.ID {
	if role != t.role {
		*t = trail{before: t.key(), role: role}
	}
	switch {
	case u.loose:
		for i := range t.loose {
			t.loose[i] += binary.LittleEndian.Uint64(u.hash[8*i:])
		}
	case u.words != "":
		t.words = append(t.words, u.words...)
	case u.lines != "":
		t.lines = append(append(t.lines, u.lines...), '\n')
	default:
		hash := digest("lines", string(t.lines), string(u.hash[:]))
		t.row, t.lines = append(t.row, hash[:]...), nil
	}
	return t.key()
}

func (t *trail) key() objects.ID {
	if t.role == content.NoRole {
		return objects.ID{}
	}
	var loose []byte
	for _, part := range t.loose {
		loose = binary.LittleEndian.AppendUint64(loose, part)
	}
	return digest(string(t.before[:]), t.role.String(), string(t.row), string(t.lines), string(t.words), string(loose))
}

// digest is the hash of parts that cannot run into one another.
func digest(parts ...string) objects.ID {
	var all []byte
	for _, part := range parts {
		all = binary.AppendUvarint(all, uint64(len(part)))
		all = append(all, part...)
	}
	return objects.Hash(all)
}

// resultWords is what came of a call: the words of a list of texts are as good as
// one text.
func resultWords(r content.ToolResult) string {
	parts, err := rawjson.Parse(r.Parts)
	if err != nil {
		return strings.TrimFunc(r.Text, unicode.IsSpace)
	}
	var words []string
	for part := range parts.Elements() {
		text := part.Get("text")
		if text.Kind() != rawjson.KindString {
			return canonical(string(r.Parts))
		}
		words = append(words, text.Text())
	}
	if parts.Kind() != rawjson.KindArray {
		return canonical(string(r.Parts))
	}
	return strings.TrimSpace(strings.Join(words, ""))
}

// canonical is a JSON text in the one form that all ways to write it have in
// common, without marks for caches. What is no JSON is itself.
func canonical(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return "{}"
	}
	v, err := rawjson.Parse([]byte(text))
	if err != nil {
		return text
	}
	return string(appendCanonical(nil, v))
}

func appendCanonical(dst []byte, v rawjson.Value) []byte {
	switch v.Kind() {
	case rawjson.KindObject:
		var members [][]byte
		for key, member := range v.Members() {
			if key != "cache_control" {
				members = append(members, appendCanonical(append(rawjson.AppendString(nil, key), ':'), member))
			}
		}
		slices.SortFunc(members, bytes.Compare)
		return append(append(append(dst, '{'), bytes.Join(members, []byte{','})...), '}')
	case rawjson.KindArray:
		dst = append(dst, '[')
		for element := range v.Elements() {
			dst = append(appendCanonical(dst, element), ',')
		}
		return append(dst, ']')
	case rawjson.KindString:
		return rawjson.AppendString(dst, v.Text())
	case rawjson.KindNumber:
		if f, err := strconv.ParseFloat(string(v), 64); err == nil {
			return strconv.AppendFloat(dst, f, 'g', -1, 64)
		}
	}
	return append(dst, v...)
}
