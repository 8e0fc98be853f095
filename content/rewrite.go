package content

import (
	"strings"
	"unicode/utf8"
)

// Rewritten gives b with everything that can be read in it replaced by what f makes
// of it: words, names, arguments, and the JSON that is kept of a provider's form,
// which f has to leave valid. Of media it is the URL, the name, and the bytes when they
// are text. What
// ties blocks together (ids, the name of a tool) and the seal stay.
func Rewritten(b Block, f func(string) string) Block {
	raw := func(text []byte) []byte {
		if len(text) == 0 {
			return text
		}
		said := string(text)
		if now := f(said); now != said {
			return []byte(now)
		}
		return text
	}
	switch b := b.(type) {
	case Text:
		b.Extra, b.Name, b.Text = raw(b.Extra), f(b.Name), f(b.Text)
		return b
	case Reasoning:
		parts := make([]string, 0, len(b.Parts))
		for _, part := range b.Parts {
			parts = append(parts, f(part))
		}
		if len(parts) > 0 {
			b.Parts = parts
		}
		b.Extra, b.Text = raw(b.Extra), f(b.Text)
		return b
	case ToolCall:
		b.Extra, b.Arguments = raw(b.Extra), f(b.Arguments)
		return b
	case ToolResult:
		b.Extra, b.Text, b.Parts = raw(b.Extra), f(b.Text), raw(b.Parts)
		return b
	case Media:
		b.Extra, b.Name, b.URL = raw(b.Extra), f(b.Name), f(b.URL)
		if utf8.ValidString(b.Data) && strings.IndexByte(b.Data, 0) < 0 {
			b.Data = f(b.Data)
		}
		return b
	case Native:
		b.Extra, b.JSON = raw(b.Extra), f(b.JSON)
		return b
	}
	return b
}

// Unsealed gives b without its seal and without what its provider knows it by: what
// is left when its words are changed. The words themselves stay.
func Unsealed(b Block) Block {
	switch b := b.(type) {
	case Text:
		b.Wire = b.unsealed()
		return b
	case Reasoning:
		b.Wire = b.unsealed()
		return b
	case ToolCall:
		b.Wire = b.unsealed()
		return b
	case ToolResult:
		b.Wire = b.unsealed()
		return b
	case Media:
		b.Wire = b.unsealed()
		return b
	case Native:
		b.Wire = b.unsealed()
		return b
	}
	return b
}

// unsealed is the form that is left without a seal. Whose it is stays, so that the
// block goes back in the form it had.
func (w Wire) unsealed() Wire {
	w.ID, w.Seal = "", Seal{}
	return w
}
