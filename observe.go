package tract

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// RecordedExchange is an exchange that another program has with a model: package recorder makes them.
// The request is stored as it was sent, beside what was compiled. Sent and IDs may be set
// until the Accept.
type RecordedExchange struct {
	By      string            // the program that brings it, for where the reply came from
	Request *llm.Request      // how the model was asked; its messages are not looked at
	Body    []byte            // the request as it was sent
	Sent    time.Time         // when
	IDs     map[string]string // the provider's names for the exchange, by name; kept with the reply
}

// observing makes a call that of an exchange which another program has: the request is made
// in the way of that one, whatever the settings say.
func (c *call) observing(o *RecordedExchange) error {
	if o.Request == nil {
		return fmt.Errorf("observe: want the request")
	}
	if err := checkTime(o.Sent); err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	c.observed, c.foreign = o, true
	c.tools = c.maskedTools(o.Request.Tools)
	return nil
}

// settings is what of an observed request an origin keeps.
func (o *RecordedExchange) settings() map[string]string {
	all := history.Asked(&llm.Request{Settings: o.Request.Settings})
	maps.DeleteFunc(all, func(name, value string) bool {
		return name == history.AskedStream || name == history.AskedExtra || name == history.AskedHidden || name == history.AskedEnabled && value == "true"
	})
	if model := o.Request.Settings.Model; model != "" {
		all["model"] = model
	}
	if choice := o.Request.Settings.ToolChoice; choice != "" {
		all["tool_choice"] = choice
	}
	return all
}

// observe puts what was seen of an exchange in the place of what was done here.
func (x *Exchange) observe() error {
	o := x.call.observed
	if o == nil {
		return nil
	}
	if x.sent = o.Body; !o.Sent.IsZero() {
		x.started = o.Sent
	}
	return checkTime(o.Sent)
}

// AppendMessages adds messages after a commit, in one transaction: as they are, and
// without joining them to what is there. The branch must stand at the commit, or
// not be there yet: then it begins at it, and from nothing when from is zero. A
// branch that stands elsewhere is a *[ConflictError]. Blocks that say nothing are
// left out. What it brings was said elsewhere: its secrets are masked as those of an
// import are. It returns the new commits, none when only the branch is new. The roles of the
// messages are not used; of the options Key and OnWarning are not.
func (b *Branch) AppendMessages(ctx context.Context, from objects.ID, messages []content.Message, o AppendOptions) ([]objects.ID, error) {
	c, err := b.repo.appending(o)
	if err != nil {
		return nil, err
	}
	return b.continueAt(ctx, c, "continue", from, false, func(*commit.Commit) ([]commit.Draft, error) {
		var drafts []commit.Draft
		for _, m := range messages {
			if err := content.CheckBlocks(m.Blocks); err != nil {
				return nil, err
			}
			drafts = append(drafts, c.drafts(b.name, nil, withWords(m.Blocks))...)
		}
		return drafts, nil
	})
}

// continueAt adds drafts after a commit, as Continue does. With copies, objects that were
// purged stay purged.
func (b *Branch) continueAt(ctx context.Context, c *call, command string, from objects.ID, copies bool, draft func(parent *commit.Commit) ([]commit.Draft, error)) ([]objects.ID, error) {
	if err := refs.Check(b.name); err != nil {
		return nil, fmt.Errorf("%s: branch %w", command, err)
	}
	tip, err := b.Tip(ctx)
	if err != nil {
		return nil, err
	}
	if !tip.IsZero() && tip != from {
		return nil, &ConflictError{Operation: command, Branch: b.name, Expected: from, Actual: tip}
	}
	parent, err := b.repo.header(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("%s branch %s: %w", command, b.name, err)
	}
	drafts, err := draft(parent)
	if err != nil {
		return nil, fmt.Errorf("%s branch %s: %w", command, b.name, err)
	}
	m := c.masking()
	m.Brought = true
	commits, put, err := commit.Write(parent, m.Drafts(drafts)...)
	if err != nil {
		return nil, fmt.Errorf("%s branch %s: %w", command, b.name, err)
	}
	var ids []objects.ID
	batch := b.batch(c.note(ctx, command), tip, commits, put, &ids)
	batch.Copies = copies
	if len(commits) == 0 {
		batch.Refs = []objects.RefUpdate{{Name: b.ref(), Old: tip, New: from}}
	}
	if tip == from && len(commits) == 0 {
		return nil, nil
	}
	if err = b.apply(ctx, batch); err == nil {
		c.tell(m.found)
	}
	return ids, b.conflict(command, err)
}

// withWords is blocks without those that say nothing.
func withWords(blocks []content.Block) []content.Block {
	kept := make([]content.Block, 0, len(blocks))
	for _, block := range blocks {
		if !content.IsEmpty(block) {
			kept = append(kept, block)
		}
	}
	return kept
}
