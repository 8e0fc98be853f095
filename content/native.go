package content

import (
	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/priority"
)

// KindNative is a provider's item that tract does not know.
var KindNative = register(12, Traits{Name: "native", Role: RoleAssistant, Level: priority.Normal, empty: Native{}})

// Native is a provider's item that tract does not know: its JSON as received. It is sent
// back only to the dialect of its form, and is shown by its type.
type Native struct {
	Wire
	JSON string
}

// Kind returns KindNative.
func (n Native) Kind() Kind { return KindNative }

// String returns the JSON.
func (n Native) String() string { return n.JSON }

func (n Native) withEditedText(text string) Block {
	n.JSON = text
	return n
}

func (n Native) withWire(w Wire) Block {
	n.Wire = w
	return n
}

func (n Native) rewriteOutsideForm(r rewriter) Block {
	r.rewrite(&n.JSON)
	return n
}

func (n Native) afterPurge(Wire) Block { return Native{} }

// The field of the record of a [Native].
const fieldJSON = firstOfKind

func (n Native) fieldsOfKind(r *canonical.Record) Block {
	r.String(fieldJSON, &n.JSON)
	return n
}
