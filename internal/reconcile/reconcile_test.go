package reconcile

import (
	"testing"

	"github.com/tract-vcs/tract/content"
)

func TestCompare(t *testing.T) {
	say := func(role content.Role, blocks ...content.Block) content.Message {
		return content.Message{Role: role, Blocks: blocks}
	}
	user := func(text string) content.Message { return say(content.RoleUser, content.User(text)) }
	assistant := func(blocks ...content.Block) content.Message { return say(content.RoleAssistant, blocks...) }
	thought, other := content.Reasoning{Text: "hm"}, content.Reasoning{Text: "no"}
	answer := content.Assistant("A")
	unknown := struct{ content.Text }{content.User("a block of a type that unitOf has no case for")}
	type list = []content.Message
	for name, c := range map[string]struct {
		history, list []content.Message
		want          Match
	}{
		"nothing":                              {nil, nil, Match{Whole: true}},
		"an empty history":                     {nil, list{user("Q")}, Match{Whole: true}},
		"an empty list":                        {list{user("Q")}, nil, Match{}},
		"the same":                             {list{user("Q"), assistant(answer)}, list{user("Q"), assistant(answer)}, Match{2, 2, true}},
		"more":                                 {list{user("Q")}, list{user("Q"), assistant(answer)}, Match{1, 1, true}},
		"less":                                 {list{user("Q"), assistant(answer)}, list{user("Q")}, Match{1, 1, false}},
		"another":                              {list{user("Q"), assistant(answer)}, list{user("Q"), user("R")}, Match{1, 1, false}},
		"reasoning left out":                   {list{user("Q"), assistant(thought, answer)}, list{user("Q"), assistant(answer)}, Match{3, 2, true}},
		"reasoning at the end left out":        {list{user("Q"), assistant(thought)}, list{user("Q"), assistant(answer)}, Match{2, 1, true}},
		"reasoning at the end":                 {list{user("Q"), assistant(thought)}, list{user("Q"), assistant(thought, answer)}, Match{2, 2, true}},
		"other reasoning at the end":           {list{user("Q"), assistant(thought)}, list{user("Q"), assistant(other)}, Match{2, 1, true}},
		"reasoning before the other way":       {list{user("Q"), assistant(thought, answer)}, list{user("Q"), assistant(thought), user("R")}, Match{2, 2, false}},
		"a block of an unknown type left out":  {list{user("Q"), assistant(answer), say(content.RoleUser, unknown)}, list{user("Q"), assistant(answer), user("R")}, Match{3, 2, true}},
		"a block of an unknown type between":   {list{user("Q"), say(content.RoleUser, unknown), assistant(answer)}, list{user("Q"), assistant(answer), user("R")}, Match{3, 2, true}},
		"a block of an unknown type sent back": {list{user("Q"), assistant(answer), say(content.RoleUser, unknown)}, list{user("Q"), assistant(answer), say(content.RoleUser, unknown), user("R")}, Match{3, 3, true}},
		"one of two reasonings":                {list{user("Q"), assistant(thought, other)}, list{user("Q"), assistant(other)}, Match{3, 2, true}},
	} {
		if have := CompareMessages(c.history, c.list); have != c.want {
			t.Errorf("%s: %+v, want %+v", name, have, c.want)
		}
	}
}
