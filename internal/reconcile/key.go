package reconcile

import (
	"encoding/binary"
	"strings"
	"unicode"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/objects"
)

// This file computes the keys by which conversations are compared. Each block becomes a unit: the
// part of it that counts, in a normalized form. A runningKey hashes the units of a conversation
// one after another. The units of one role in a row are hashed together, so that the key does not
// depend on how they are divided into blocks and messages; the hashes of tool calls and results
// are added up, so that the key does not depend on their order.

// unit is the part of one block that a key covers.
type unit struct {
	hash      objects.ID // hash of a block other than text
	modelText string     // text of a model, without white space
	otherText string     // other text, without empty lines
	unordered bool       // the order of such units in a row does not count
}

// unitOf returns the unit of a block, and whether keys count it. calls has the hashes of the
// earlier calls by id, which distinguish their results; unitOf adds the hash of a call to it.
func unitOf(role content.Role, b content.Block, calls map[string]objects.ID) (u unit, counts bool) {
	switch b := b.(type) {
	case content.Text:
		if role == content.RoleAssistant {
			u.modelText = strings.Join(strings.Fields(b.Text), "")
			return u, u.modelText != ""
		}
		u.otherText = withoutEmptyLines(b.Text)
		return u, u.otherText != ""
	case content.Reasoning:
		text := strings.TrimSpace(b.String())
		if text == "" {
			text = b.Form().Seal.Data
		}
		return unit{hash: hashParts("reasoning", text)}, false
	case content.ToolCall:
		u = unit{hash: hashParts("call", b.Name, canonicalJSON(b.Arguments)), unordered: true}
		calls[b.CallID] = u.hash
		return u, !b.Server
	case content.ToolResult:
		call := calls[b.CallID]
		return unit{hash: hashParts("result", string(call[:]), resultText(b)), unordered: true}, !b.Server
	case content.Media:
		return unit{hash: hashParts("media", b.URL, b.Data)}, true
	case content.Native:
		return unit{hash: hashParts("native", canonicalJSON(b.JSON))}, role != content.RoleAssistant
	}
	return u, false
}

// withoutEmptyLines returns a text trimmed, without empty lines and without white space at the ends of
// lines, so that joined texts have the same lines as their parts.
func withoutEmptyLines(text string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line = strings.TrimRightFunc(line, unicode.IsSpace); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// runningKey is the state of the hash of a conversation up to some block. The blocks of one role
// in a row are hashed together, regardless of their division into messages and blocks.
type runningKey struct {
	before    objects.ID // key of the conversation before the row
	role      content.Role
	ordered   []byte    // hashes of the blocks whose order counts
	otherText []byte    // lines of text after those blocks
	modelText []byte    // text of the model
	unordered [4]uint64 // sum of the hashes of the blocks whose order does not count
}

// addBlock adds a block and returns the new key.
func (t *runningKey) addBlock(role content.Role, u unit) objects.ID {
	if role != t.role {
		*t = runningKey{before: t.key(), role: role}
	}
	switch {
	case u.unordered:
		for i := range t.unordered {
			t.unordered[i] += binary.LittleEndian.Uint64(u.hash[8*i:])
		}
	case u.modelText != "":
		t.modelText = append(t.modelText, u.modelText...)
	case u.otherText != "":
		t.otherText = append(append(t.otherText, u.otherText...), '\n')
	default:
		hash := hashParts("lines", string(t.otherText), string(u.hash[:]))
		t.ordered, t.otherText = append(t.ordered, hash[:]...), nil
	}
	return t.key()
}

func (t *runningKey) key() objects.ID {
	if t.role == content.NoRole {
		return objects.ID{}
	}
	var loose []byte
	for _, part := range t.unordered {
		loose = binary.LittleEndian.AppendUint64(loose, part)
	}
	return hashParts(string(t.before[:]), t.role.String(), string(t.ordered), string(t.otherText), string(t.modelText), string(loose))
}

// hashParts returns a hash of the parts. Each part is hashed with its length, so that different
// lists of parts have different hashes.
func hashParts(parts ...string) objects.ID {
	var all []byte
	for _, part := range parts {
		all = binary.AppendUvarint(all, uint64(len(part)))
		all = append(all, part...)
	}
	return objects.Hash(all)
}

// resultText returns the content of a tool result in the form in which it is compared. A list of
// text parts equals one text.
func resultText(r content.ToolResult) string {
	parts, err := rawjson.Parse(r.Parts)
	if err != nil {
		return strings.TrimSpace(r.Text)
	}
	var words []string
	onlyTexts := parts.Kind() == rawjson.KindArray
	for part := range parts.Elements() {
		words = append(words, part.Get("text").Text())
		onlyTexts = onlyTexts && part.Get("text").Kind() == rawjson.KindString
	}
	if !onlyTexts {
		return canonicalJSON(string(r.Parts))
	}
	return strings.TrimSpace(strings.Join(words, ""))
}

// canonicalJSON returns a form of a JSON text that is the same for all ways to write it, without
// cache marks. A text that is not JSON is returned without white space at its ends.
func canonicalJSON(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return "{}"
	}
	v, err := rawjson.Parse([]byte(text))
	if err != nil {
		return text
	}
	return string(rawjson.AppendCanonical(nil, v, "cache_control"))
}
