package format

import (
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/diff"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

type promptJSON struct {
	Head     objects.ID     `json:"head"`
	Target   string         `json:"target,omitempty"`
	Tokens   compile.Tokens `json:"tokens"`
	Messages []messageJSON  `json:"messages"`
	Entries  []entryJSON    `json:"entries"`
	Pending  []pendingJSON  `json:"pending,omitempty"`

	Scale *compile.Scale `json:"scale,omitempty"` // of the tokens, when a response reported its input
}

type messageJSON struct {
	Role    content.Role `json:"role"`
	Blocks  []*blockJSON `json:"blocks"`
	Commits []objects.ID `json:"commits"`
}

type entryJSON struct {
	Commit objects.ID     `json:"commit"`
	Edit   objects.ID     `json:"edit,omitzero"`
	Op     string         `json:"op"`
	Kind   content.Kind   `json:"kind"`
	Level  priority.Level `json:"level"`
	Why    priority.Why   `json:"why"`
	Sent   bool           `json:"sent"`
	Hidden objects.ID     `json:"summary,omitzero"` // the summary that stands for the entry
	Turn   int            `json:"turn"`
	Tokens int            `json:"tokens"`
	Purged *purgedJSON    `json:"pruned,omitempty"`
}

type pendingJSON struct {
	Commit objects.ID `json:"commit"`
	CallID string     `json:"call_id"`
	Name   string     `json:"name"`
}

// PromptJSON returns a prompt for programs. target is the requested model; empty: none.
func PromptJSON(pr *compile.Prompt, target string) any {
	v := promptJSON{Head: pr.Head, Target: target, Tokens: pr.Tokens, Messages: []messageJSON{}, Entries: []entryJSON{}}
	if pr.Scale.Responses > 0 {
		v.Scale = &pr.Scale
	}
	for i, commits := range pr.MessageCommits() {
		m := pr.Messages[i]
		message := messageJSON{Role: m.Role, Commits: slices.Clone(commits)}
		for _, b := range m.Blocks {
			message.Blocks = append(message.Blocks, newBlock(b))
		}
		v.Messages = append(v.Messages, message)
	}
	rows := pr.EntryTokens()
	for i, e := range pr.Entries {
		v.Entries = append(v.Entries, entryJSON{
			Commit: e.ID, Edit: e.EditedBy(), Op: e.Op.String(), Kind: e.Kind, Level: e.Level, Why: e.Why(),
			Sent: e.InPrompt, Hidden: e.SummarizedBy(), Turn: int(e.Turn), Tokens: rows[i], Purged: newPurged(e.Tombstone(), 0),
		})
	}
	for _, w := range pr.Pending {
		v.Pending = append(v.Pending, pendingJSON{Commit: w.Commit, CallID: w.Call.CallID, Name: w.Call.Name})
	}
	return v
}

type diffJSON struct {
	A     objects.ID `json:"a"`
	B     objects.ID `json:"b"`
	Equal bool       `json:"equal"`
	Stat  diff.Stat  `json:"stat"`
	Items []itemJSON `json:"items"`
}

type itemJSON struct {
	Op      diff.Op    `json:"op"`
	A       *sideJSON  `json:"a,omitempty"`
	B       *sideJSON  `json:"b,omitempty"`
	Changes []spanJSON `json:"changes,omitempty"` // of the text, by lines
}

type sideJSON struct {
	*diff.Block
	Content *blockJSON `json:"content,omitempty"` // of a changed block
}

type spanJSON struct {
	Op         diff.Op `json:"op"`
	Text       string  `json:"text"`
	TextBase64 string  `json:"text_base64,omitempty"`
}

// newSide returns the JSON of a block on one side of a difference; nil if that side has none.
func newSide(b *diff.Block, withContent bool) *sideJSON {
	if b == nil {
		return nil
	}
	v := &sideJSON{Block: b}
	if withContent {
		v.Content = newBlock(b.Content)
	}
	return v
}

// DiffJSON returns the difference of two prompts for programs.
func DiffJSON(d *diff.Diff) any {
	v := diffJSON{A: d.A, B: d.B, Equal: d.Equal(), Stat: d.Stat, Items: []itemJSON{}}
	for _, it := range d.Items {
		changed := it.Op != diff.Same
		item := itemJSON{Op: it.Op, A: newSide(it.A, changed), B: newSide(it.B, changed)}
		if it.Op == diff.Change {
			for _, span := range diff.Texts(it.A.Content.String(), it.B.Content.String(), diff.TextOptions{}) {
				item.Changes = append(item.Changes, spanJSON{Op: span.Op, Text: span.Text, TextBase64: base64OrEmptyIfValid(span.Text)})
			}
		}
		v.Items = append(v.Items, item)
	}
	return v
}

type historyJSON struct {
	Base  objects.ID        `json:"base,omitzero"`
	OnlyA []shortCommitJSON `json:"only_a"`
	OnlyB []shortCommitJSON `json:"only_b"`
}

type shortCommitJSON struct {
	ID      objects.ID   `json:"id"`
	Short   string       `json:"short"`
	Op      string       `json:"op"`
	Kind    content.Kind `json:"kind"`
	Role    content.Role `json:"role"`
	Time    string       `json:"time"`
	Author  string       `json:"author,omitempty"`
	Summary string       `json:"summary"`
	Target  objects.ID   `json:"target,omitzero"`
}

// HistoryJSON returns the difference of two histories for programs.
func HistoryJSON(h *diff.History) any {
	return historyJSON{Base: h.Base, OnlyA: newShortCommits(h.OnlyA), OnlyB: newShortCommits(h.OnlyB)}
}

func newShortCommits(commits []*commit.Commit) []shortCommitJSON {
	list := make([]shortCommitJSON, len(commits))
	for i, c := range commits {
		list[i] = shortCommitJSON{
			ID: c.ID, Short: c.ID.Short(), Op: c.Op.String(), Kind: c.Kind, Role: c.Role, Time: jsonTime(c.Time),
			Author: c.Author, Summary: SummaryJSON(c, summaryCells), Target: c.Target,
		}
	}
	return list
}
