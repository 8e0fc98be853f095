package content

import "github.com/tract-vcs/tract/canon"

// Left is what stays of a block when its words are erased: its kind, its role, and
// what other blocks know it by. It holds nothing that was said, thought, called with
// or answered, and no seal.
func Left(b Block) Block {
	form := Form{Role: b.Form().Role}.Wire()
	switch b := b.(type) {
	case Text:
		left := Text{Wire: form, Of: b.Of}
		if b.Of == KindSystem {
			left.Name = b.Name // it may stand in the place of another
		}
		return left
	case ToolCall:
		return ToolCall{Wire: form, CallID: b.CallID, Name: b.Name, Server: b.Server}
	case ToolResult:
		return ToolResult{Wire: form, CallID: b.CallID, Name: b.Name, IsError: b.IsError, Server: b.Server}
	case Reasoning:
		return Reasoning{Wire: form, Format: b.Format, Source: b.Source}
	case Media:
		return Media{Wire: form, Of: b.Of, MediaType: b.MediaType}
	}
	return Bare(b.Kind())
}

// Bare is a block of a kind of which nothing else is known; nil of an unknown kind.
func Bare(k Kind) Block {
	t := k.Traits()
	if t.decode == nil {
		return nil
	}
	return t.decode(k, Wire{}, canon.NewDecoder(nil))
}
