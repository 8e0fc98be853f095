package record

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm/rawjson"
	"github.com/tract-vcs/tract/objects"
)

// A match key is the hash of a conversation up to one block of it, over what a
// client cannot change when it sends the conversation again: who speaks, the
// words, the names and arguments of calls, and results; secrets in them count as their
// masks (see [index.masked]). Thoughts, marks for
// caches, ids, the order of parallel calls and of their results, and white space
// around words do not count; nor what a provider did by itself, which clients drop
// or keep as they like.

// spot is a block of a conversation and the keys of what leads up to it.
type spot struct {
	message, block int
	whole          objects.ID // key of all
	talk           objects.ID // key without the instructions at the beginning; zero inside them
	replied        bool       // the model has spoken by then
}

// spots gives the spots of a conversation, and how many messages of instructions
// it begins with. Blocks that do not count are no spots of their own.
func spots(messages []content.Message) (list []spot, lead int) {
	for lead < len(messages) && messages[lead].Role == content.RoleSystem {
		lead++
	}
	var whole, talk trail
	calls := map[string]objects.ID{}
	replied := false
	for i, m := range messages {
		for j, b := range m.Blocks {
			u, counts := unitOf(m.Role, b, calls)
			if !counts {
				continue
			}
			s := spot{message: i, block: j, whole: whole.add(m.Role, u)}
			if i >= lead {
				replied = replied || m.Role == content.RoleAssistant
				s.talk, s.replied = talk.add(m.Role, u), replied
			}
			list = append(list, s)
		}
	}
	return list, lead
}

// unit is what counts of one block.
type unit struct {
	hash  objects.ID // of all but what a model says in words
	words string     // these, without white space
	loose bool       // its order among its like does not count
}

// unitOf is what counts of a block. calls is the calls so far, by id, which
// results are told apart by.
func unitOf(role content.Role, b content.Block, calls map[string]objects.ID) (u unit, counts bool) {
	switch b := b.(type) {
	case content.Text:
		if role == content.RoleAssistant {
			u.words = strings.Join(strings.Fields(b.Text), "")
			return u, u.words != ""
		}
		text := strings.TrimSpace(b.Text)
		return unit{hash: digest("text", text)}, text != ""
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

// trail is a conversation up to some block. What one side says in a row counts
// together, however it is cut into messages and blocks.
type trail struct {
	before objects.ID // key of all that was said before the row
	role   content.Role
	row    []byte    // hashes of what counts in order
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
	default:
		t.row = append(t.row, u.hash[:]...)
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
	return digest(string(t.before[:]), t.role.String(), string(t.row), string(t.words), string(loose))
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
