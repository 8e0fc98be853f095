package wire

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/big"
	"strings"
	"unicode/utf8"
)

// Ids of calls are sent to the model that is asked next, and not every format takes ids
// that another one made. An id that the format refuses is changed: the same way in each
// request, so that a result finds its call, and so that different ids stay different.
// Names of tools are never changed: the model has to find the tool.

// SafeCallID returns an id of letters, digits, _ and -, as Anthropic and Amazon want them,
// of at most max characters; 0 is no limit. Different ids stay different.
func SafeCallID(id string, most int) string {
	clean := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (isAlphanumeric(byte(r)) || r == '_' || r == '-') {
			return r
		}
		return '_'
	}, id)
	fits := most == 0 || len(clean) <= most
	if clean == id && id != "" && fits {
		return id
	}
	hash := fmt.Sprintf("_%016x", hashID(id))
	if clean = cmp.Or(clean, "call"); most > 0 {
		clean = clean[:min(len(clean), most-len(hash))]
	}
	return clean + hash
}

// ShortCallID returns an id of at most max bytes.
func ShortCallID(id string, most int) string {
	if id != "" && len(id) <= most {
		return id
	}
	return fmt.Sprintf("call_%016x", hashID(id))
}

// OpenAICallID returns an id as OpenAI's chat wants it: "Expected a string with maximum
// length 40".
func OpenAICallID(id string) string { return ShortCallID(id, 40) }

// MistralCallID returns an id as Mistral wants it: "must be a-z, A-Z, 0-9, with a length
// of 9".
func MistralCallID(id string) string {
	const length = 9
	other := func(r rune) bool { return r >= utf8.RuneSelf || !isAlphanumeric(byte(r)) }
	if len(id) == length && strings.IndexFunc(id, other) < 0 {
		return id
	}
	digits := strings.Repeat("0", length) + new(big.Int).SetUint64(hashID(id)).Text(62)
	return digits[len(digits)-length:]
}

func hashID(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	return h.Sum64()
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// MakeCallID returns an id for a call that came without one. It is the same each time the
// response is read. It is not sent back, since the block has no id of the provider.
func (o *BlockWriter) MakeCallID(what ...string) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %d %q", o.Head.ID, o.Count, what)
	return fmt.Sprintf("call_%016x", h.Sum64())
}

// CallID returns an id of a call as the server takes it.
func (t Target) CallID(id string) string {
	if t.Quirks.CallID == nil {
		return id
	}
	return t.Quirks.CallID(id)
}
