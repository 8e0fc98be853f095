package wire

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/big"
	"strings"
	"unicode/utf8"
)

// Ids of calls go to whoever is asked next, and not every format takes what
// another made. One that it refuses is changed: the same in each request, so that
// a result finds its call, and in such a way that different ids stay different.
// Names of tools are never changed: the model has to find the tool.

// wordID is an id of letters, digits, _ and -, as Anthropic and Amazon want them;
// most is how many they may be, 0 is any number.
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

// shortID is an id of any characters, but not more than most of them.
func ShortCallID(id string, most int) string {
	if id != "" && len(id) <= most {
		return id
	}
	return fmt.Sprintf("call_%016x", hashID(id))
}

// openAIID is an id as models of OpenAI want it in chat: "Expected a string with
// maximum length 40".
func OpenAICallID(id string) string { return ShortCallID(id, 40) }

// mistralID is an id as Mistral wants it: "must be a-z, A-Z, 0-9, with a length of
// 9".
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

// madeID is an id for a call that has none. It is the same whenever the response
// is read, and does not go back: the block has no id of its provider's.
func (o *BlockWriter) MakeCallID(what ...string) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %d %q", o.Head.ID, o.Count, what)
	return fmt.Sprintf("call_%016x", h.Sum64())
}

// callID is an id as the server takes it.
func (t Target) CallID(id string) string {
	if t.Quirks.CallID == nil {
		return id
	}
	return t.Quirks.CallID(id)
}
