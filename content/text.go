package content

import (
	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/priority"
)

// The kinds that are a text and a name.
var (
	// KindSystem is an instruction. A later one of the same name replaces it; one
	// without a name is never replaced.
	KindSystem = register(1, Traits{Name: "system", Role: RoleSystem, Level: priority.Pinned, Text: true, empty: Text{Of: 1}})

	// KindUser is the text of a person.
	KindUser = register(2, Traits{Name: "user", Role: RoleUser, Level: priority.Normal, Text: true, empty: Text{Of: 2}})

	// KindAssistant is the text of a response.
	KindAssistant = register(3, Traits{Name: "assistant", Role: RoleAssistant, Level: priority.Normal, Text: true, empty: Text{Of: 3}})

	// KindArtifact is output worth keeping: a report, a plan, a program.
	KindArtifact = register(9, Traits{Name: "artifact", Role: RoleAssistant, Level: priority.Normal, Text: true, empty: Text{Of: 9}})

	// KindNote is a text for people. It is never sent.
	KindNote = register(10, Traits{Name: "note", Role: NoRole, Level: priority.Skip, Text: true, Private: true, empty: Text{Of: 10}})

	// KindSummary stands for a range of commits.
	KindSummary = register(11, Traits{Name: "summary", Role: RoleSystem, Level: priority.Normal, Text: true, empty: Text{Of: 11}})
)

// Text is a block that is a text and a name. Of is its kind, whose traits have Text set.
type Text struct {
	Wire
	Of   Kind
	Name string // of a system block or an artifact; may be empty
	Text string
}

// System returns an instruction without a name.
func System(text string) Text { return Text{Of: KindSystem, Text: text} }

// User returns the text of a person.
func User(text string) Text { return Text{Of: KindUser, Text: text} }

// Assistant returns the text of a response.
func Assistant(text string) Text { return Text{Of: KindAssistant, Text: text} }

// Note returns a text for people, which is never sent.
func Note(text string) Text { return Text{Of: KindNote, Text: text} }

// Kind returns t.Of.
func (t Text) Kind() Kind { return t.Of }

// String returns the text.
func (t Text) String() string { return t.Text }

func (t Text) withEditedText(text string) Block {
	t.Wire, t.Text = t.afterEdit(), text
	return t
}

func (t Text) withWire(w Wire) Block {
	t.Wire = w
	return t
}

func (t Text) rewriteOutsideForm(r rewriter) Block {
	r.rewrite(&t.Name, &t.Text)
	return t
}

func (t Text) afterPurge(w Wire) Block {
	left := Text{Wire: w, Of: t.Of}
	if t.Of == KindSystem {
		left.Name = t.Name // it may replace another of the same name
	}
	return left
}

// The fields of the record of a [Text].
const (
	fieldTextName = firstOfKind + iota
	fieldText
)

func (t Text) fieldsOfKind(r *canonical.Record) Block {
	r.String(fieldTextName, &t.Name)
	r.String(fieldText, &t.Text)
	return t
}
