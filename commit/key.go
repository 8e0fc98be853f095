package commit

import "fmt"

// KeyKind is who chose an idempotency key. Keys of different kinds never equal each other.
type KeyKind uint8

// The kinds of keys. Their numbers are in records and never change.
const (
	KeyCaller   KeyKind = iota // the program that made the call
	KeyRequest                 // the same: it is the key of the request, and the commit answers that
	KeyResponse                // the provider: it is the id of the response
	KeyImport                  // the importer: it is a position in the source
	keyEnd
)

var keyNames = [...]string{"caller", "request", "response", "import"}

// String returns the name of the kind.
func (k KeyKind) String() string {
	if k < keyEnd {
		return keyNames[k]
	}
	return fmt.Sprintf("key(%d)", uint8(k))
}

// Key makes a call or an import safe to repeat: what has the key already is not committed
// again. The zero Key is none.
type Key struct {
	Kind     KeyKind
	Text     string
	Importer string // of a KeyImport: the program that named the position
	Block    int    // of a KeyImport: which of the blocks at the position, from 0
}

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return k == Key{} }

// String returns the key, for people.
func (k Key) String() string {
	switch {
	case k.Kind == KeyCaller:
		return k.Text
	case k.Block > 0:
		return fmt.Sprintf("%s (%s, block %d)", k.Text, k.Kind, k.Block)
	}
	return fmt.Sprintf("%s (%s)", k.Text, k.Kind)
}

// checkFieldsOfKind returns an error for a key whose fields do not fit its kind.
func (k *Key) checkFieldsOfKind() error {
	switch {
	case k.Kind != KeyImport && (k.Importer != "" || k.Block != 0):
		return malformed("an import position in a key of another kind")
	case k.Text == "" && (k.Kind == KeyRequest || k.Kind == KeyResponse):
		return malformed("a kind of key without the key")
	}
	return nil
}
