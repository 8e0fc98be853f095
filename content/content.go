// Package content defines the blocks of a conversation, and their records.
//
// A [Block] is one piece: a text, reasoning, a tool call, its result, an image. There is one file for
// each kind; [Kind.Traits] says how a kind behaves. For most uses: make blocks with [System], [User]
// and [Assistant] or as literals of their types, and distinguish them with a type switch.
//
// A block keeps its bytes as they came, valid UTF-8 or not. [Encode] returns the one canonical
// record of a block and [Decode] refuses every other record, so that equal blocks have equal hashes.
// Blocks are values: nothing in this package changes one.
package content

import (
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/internal/canonical"
)

// MaxSize is the most bytes the record of one block may have.
const MaxSize = 64 << 20

// Block is one piece of a conversation: a value, not a pointer, of a type of this
// package. [CheckBlock] returns an error for anything else.
//
//nolint:interfacebloat // every kind has all of it, and the compiler asks for it
type Block interface {
	// Kind returns the kind of the block.
	Kind() Kind
	// Form returns the provider's form of the block; zero for a block made by hand.
	Form() Form
	// String returns the one text of the block: the text, the arguments, the content. It is what
	// people see and what an edit replaces, so it holds no other field: package format shows those.
	// It may be empty, and may hold any bytes.
	String() string
	// withEditedText returns the block with another text in the place of what String returns,
	// and without what only fitted the old text; nil when it has no text.
	withEditedText(text string) Block
	// withWire returns the block with another form.
	withWire(w Wire) Block
	// rewriteOutsideForm returns the block with r applied to every text in it that people can
	// read, not to ids nor to its form.
	rewriteOutsideForm(r rewriter) Block
	// afterPurge returns what stays of the block when its content is purged, with the form w:
	// nothing that was said, but what other blocks know it by.
	afterPurge(w Wire) Block
	// fieldsOfKind writes the fields of its kind to a record, or returns the block with those of
	// a record that is read.
	fieldsOfKind(r *canonical.Record) Block
}

// IsEmpty reports whether a block is a text without text or seal, or reasoning without text, seal
// and id.
func IsEmpty(b Block) bool {
	switch f := b.Form(); b.(type) {
	case Text:
		return b.String() == "" && f.Seal.IsZero()
	case Reasoning:
		return b.String() == "" && f.Seal.IsZero() && f.ID == ""
	default:
		return false
	}
}

// IsBlank reports whether a block of a response is white space alone, with no seal and
// nothing else that its provider wants back.
func IsBlank(b Block) bool {
	t, ok := b.(Text)
	t.Text = strings.TrimSpace(t.Text)
	return ok && IsEmpty(t) && len(t.Form().Extra) == 0
}

// CheckBlocks returns the first error of [CheckBlock], with the number of the block in the
// list, from 1.
func CheckBlocks(list []Block) error {
	for i, b := range list {
		if err := CheckBlock(b); err != nil {
			return fmt.Errorf("block %d: %w", i+1, err)
		}
	}
	return nil
}

// Role is the role of a message, as in the requests of a provider.
type Role uint8

// The roles. NoRole is that of a note, which is never sent.
const (
	NoRole Role = iota
	RoleSystem
	RoleUser
	RoleAssistant
	RoleTool
	roleEnd
)

var roleNames = [...]string{"none", "system", "user", "assistant", "tool"}

// String returns the name of the role.
func (r Role) String() string {
	if r < roleEnd {
		return roleNames[r]
	}
	return fmt.Sprintf("role(%d)", uint8(r))
}

// ParseRole reads the name of a role.
func ParseRole(name string) (Role, error) {
	for r, n := range roleNames {
		if n == name {
			return Role(r), nil
		}
	}
	return NoRole, fmt.Errorf("role %q: want one of %v", name, roleNames)
}

// MarshalText writes the name of the role.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the name of a role.
func (r *Role) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRole(string(b))
	return err
}

// RoleOf returns the role of b: that of its form, else the usual role of its kind.
func RoleOf(b Block) Role {
	if r := b.Form().Role; r != NoRole {
		return r
	}
	return b.Kind().Traits().Role
}

// Message is a run of blocks of one role, such as one response of a model.
type Message struct {
	Role   Role
	Blocks []Block
}

// SealType is the type of a seal.
type SealType uint8

// The types of seals.
const (
	NoSeal    SealType = iota
	Signature          // proves that the text beside it is the model's own
	Encrypted          // holds the reasoning itself, readable only by its provider
	Redacted           // reasoning that the provider hides
	Opaque             // the provider does not name the type
	sealEnd
)

var sealNames = [...]string{"", "signature", "encrypted", "redacted", "opaque"}

// String returns the name of the type; empty for NoSeal.
func (t SealType) String() string {
	if t < sealEnd {
		return sealNames[t]
	}
	return fmt.Sprintf("seal(%d)", uint8(t))
}

// Seal is bytes that a provider wants back exactly as it sent them. They are
// never shown as text, masked or encoded anew, and go back only to the dialect
// and model family that minted them.
type Seal struct {
	Type   SealType
	Data   string
	Minted string // DIALECT/MODEL
}

// IsZero reports whether there is no seal.
func (s Seal) IsZero() bool { return s == Seal{} }

// WithText returns b with another text: what `edit` commits. The kind and the role
// stay; a seal and what the provider knew of the old text go. A block without
// a text of its own, such as an image, cannot be edited.
func WithText(b Block, text string) (Block, error) {
	edited := b.withEditedText(text)
	if edited == nil {
		return nil, fmt.Errorf("edit: a block of kind %s has no text to replace", b.Kind())
	}
	return edited, nil
}
