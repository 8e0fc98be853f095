package tract

import (
	"cmp"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
)

// draft is the draft of a commit of a block, with all that the call says of each commit.
func (c *call) draft(block content.Block, origin *commit.Origin) commit.Draft {
	return commit.Draft{Block: block, Time: c.time, Author: c.author, Key: c.key, Origin: origin, Label: c.label}
}

// drafts is the drafts of blocks that a person or a tool adds after tip.
func (c *call) drafts(session string, tip *commit.Commit, blocks []content.Block) []commit.Draft {
	drafts := make([]commit.Draft, len(blocks))
	origins := map[commit.Source]*commit.Origin{} // blocks of one source share theirs
	for i, block := range blocks {
		source := cmp.Or(c.source, commit.SourceUser)
		if c.source == "" && block.Kind() == content.KindToolResult {
			source = commit.SourceTool
		}
		if origins[source] == nil {
			origins[source] = &commit.Origin{Source: source, Session: session}
		}
		d := c.draft(block, origins[source])
		d.Role, d.Priority = cmp.Or(c.role, content.RoleOf(block)), c.priority
		switch {
		case i == 0 && continues(tip, &d):
			d.Index = tip.Index + 1
		case i > 0 && joins(d.Role) && drafts[i-1].Role == d.Role:
			d.Index = drafts[i-1].Index + 1
		}
		drafts[i] = d
	}
	return drafts
}

// joins reports whether blocks of a role that follow one another are one message.
func joins(role content.Role) bool { return role != content.NoRole && role != content.RoleSystem }

// continues reports whether a block goes on with the message of the last commit, which an
// earlier call added: when both have the same origin and are parts of one message of a
// model, a thought, a call or what follows them, or results of tools.
func continues(last *commit.Commit, d *commit.Draft) bool {
	if last == nil || last.Op != commit.Append || last.Role != d.Role || !joins(d.Role) {
		return false
	}
	part := func(k content.Kind) bool { return k == content.KindReasoning || k == content.KindToolCall }
	goesOn := d.Role == content.RoleTool || d.Role == content.RoleAssistant && (part(last.Kind) || d.Block.Kind() == content.KindToolCall)
	return goesOn && last.OriginID == d.Origin.Object().ID // to hash it takes longest
}
