package wire

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/big"
	"strings"
	"unicode/utf8"
)

// How ids of tool calls are adapted.
//
// A conversation may continue with another model, and not every API accepts the call ids
// that another provider made. The encoder changes an id that the API refuses: it replaces
// the characters that are not allowed, and adds or substitutes a hash of the original id.
// The same id changes in the same way in each request, so a result keeps the id of its
// call, and different ids stay different. Names of tools never change, because the model
// calls the tools by name.

// SafeCallID returns an id of letters, digits, _ and -, as Anthropic and Amazon require, with
// at most most characters; 0 is no limit. Different ids stay different.
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

// ShortCallID returns the id, or a hash of it if it is empty or longer than most bytes.
func ShortCallID(id string, most int) string {
	if id != "" && len(id) <= most {
		return id
	}
	return fmt.Sprintf("call_%016x", hashID(id))
}

// OpenAICallID returns an id as OpenAI's chat requires it: "Expected a string with maximum
// length 40".
func OpenAICallID(id string) string { return ShortCallID(id, 40) }

// MistralCallID returns an id as Mistral requires it: "must be a-z, A-Z, 0-9, with a length
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

// MakeCallID returns an id for a call that came without one, made from the response id, the
// number of blocks and parts. The id is the same each time the response is read. It is not
// sent back, because the block has no id from the provider.
func (o *BlockWriter) MakeCallID(parts ...string) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %d %q", o.Head.ID, o.Count, parts)
	return fmt.Sprintf("call_%016x", h.Sum64())
}

// CallID returns a call id in the form that the server accepts.
func (t Target) CallID(id string) string {
	if t.Quirks.CallID == nil {
		return id
	}
	return t.Quirks.CallID(id)
}
