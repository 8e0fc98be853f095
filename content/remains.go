package content

// Remains returns what stays of a block when its content is purged: its kind, its role, and
// the ids and names by which other blocks refer to it. It holds no text, no arguments, no result
// and no seal.
func Remains(b Block) Block { return b.afterPurge(Form{Role: b.Form().Role}.Wire()) }

// EmptyBlock returns a block of a kind of which nothing else is known; nil of an unknown kind.
func EmptyBlock(k Kind) Block { return k.Traits().empty }
