package content

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/tract-vcs/tract/priority"
)

// Kind is the kind of a block.
type Kind uint8

// Traits describes how the blocks of a kind behave.
type Traits struct {
	Name    string         // the name of the kind on the command line and in JSON
	Role    Role           // the role of a block that has none of its own; it decides more than the wire: see docs/adding-a-kind.md
	Level   priority.Level // the priority of a block that nobody has set
	Text    bool           // blocks are a [Text], which a person can make from a text alone
	Private bool           // blocks are never sent to a provider, whatever their role and priority

	empty Block // a block of the kind of which nothing else is known
}

// kinds holds the traits by number. Numbers are in records and never change.
var kinds [16]Traits

// register makes a kind known. Every file of a kind calls it once.
func register(number Kind, t Traits) Kind {
	if kinds[number].Name != "" {
		panic(fmt.Sprintf("content: two kinds with number %d", number))
	}
	kinds[number] = t
	return number
}

// CheckBlock returns an error unless b is a value of the type of its kind, and of a role
// and a seal that are defined: unless Decode returns b from what Encode writes of it.
func CheckBlock(b Block) error {
	if b == nil {
		return errors.New("no block: it is nil")
	}
	got := reflect.TypeOf(b)
	known := false
	for i := range kinds {
		known = known || reflect.TypeOf(kinds[i].empty) == got
	}
	if !known { // not even its methods can be trusted
		return fmt.Errorf("a block of type %s: want a value of a type of package content, such as content.Text and not *content.Text", got)
	}
	k, f := b.Kind(), b.Form()
	switch want := reflect.TypeOf(EmptyBlock(k)); {
	case want == nil:
		return fmt.Errorf("a block of the unknown %s: want one of %v", k, Kinds())
	case got != want:
		return fmt.Errorf("a block of type %s and of kind %s: want a %s", got, k, want)
	case f.Role >= roleEnd:
		return fmt.Errorf("a block of the unknown %s: want one of %v", f.Role, roleNames)
	case f.Seal.Type >= sealEnd:
		return fmt.Errorf("a block with a seal of the unknown type %d", f.Seal.Type)
	}
	return nil
}

// IsKnown reports whether k is one of the kinds.
func (k Kind) IsKnown() bool { return int(k) < len(kinds) && kinds[k].empty != nil }

// Traits returns how the blocks of this kind behave; zero for an unknown kind.
func (k Kind) Traits() Traits {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return Traits{}
}

// String returns the name of the kind.
func (k Kind) String() string {
	if name := k.Traits().Name; name != "" {
		return name
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// MarshalText writes the name of the kind.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Kinds lists all kinds.
func Kinds() []Kind {
	var list []Kind
	for k, t := range kinds {
		if t.Name != "" {
			list = append(list, Kind(k))
		}
	}
	return list
}

// ParseKind reads the name of a kind.
func ParseKind(name string) (Kind, error) {
	for _, k := range Kinds() {
		if k.String() == name {
			return k, nil
		}
	}
	return 0, fmt.Errorf("kind %q: want one of %v", name, Kinds())
}

// imageBytes is what an image weighs in a prompt, whatever its file weighs.
const imageBytes = 6 << 10

// PromptBytes returns how many bytes of a prompt a block of this kind takes, when its
// record has size bytes. It is what budgets and token estimates count.
func (k Kind) PromptBytes(size int64) int64 {
	if k == KindImage {
		return imageBytes
	}
	return size
}
