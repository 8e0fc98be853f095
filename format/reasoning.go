package format

import (
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
)

// Reasoning is a block of reasoning with further values that a list shows.
type Reasoning struct {
	*inspect.ReasoningBlock
	Tokens  int   // the estimate, scaled
	Damaged error // why its content or a part of its metadata cannot be read; nil: it is intact
}

// Reasoning writes one block in two lines: time, branch and model, then its first line.
func (p *Printer) Reasoning(t Reasoning) {
	g := p.newBuffer()
	o := t.Origin()
	g.add(colorize(g.styles.id, t.Commit.ID.Short()), " ", colorize(g.styles.dim, p.relativeTime(t.Commit.Time)))
	for _, part := range []string{Line(o.Session), Line(o.Model), t.reportedAndEstimatedTokens(), t.sealKind()} {
		if part != "" {
			g.add(" · ", part)
		}
	}
	g.add("\n")
	c := Commit{Commit: t.Commit, Damaged: t.Damaged}
	g.reasoningLine(indent, reasoningTag, c.summary(g.cellsLeft(indent+reasoningTag), moreMark))
	g.flush()
}

// WholeReasoning writes one block with its whole text.
func (p *Printer) WholeReasoning(t Reasoning) {
	g := p.newBuffer()
	if p.logged {
		g.emptyLine()
	}
	p.logged = true
	g.line(colorize(g.styles.id, "commit "+t.Commit.ID.String()))
	o := t.Origin()
	g.field("Session", o.Session)
	if o.Model != "" {
		g.field("Model", modelAndUsage(&o))
	}
	g.field("Date", g.fullTime(t.Commit.Time))
	g.field("Tokens", t.reportedAndEstimatedTokens())
	g.wireFormFields(t.Commit.Block)
	g.purgedField(t.Commit)
	g.emptyLine()
	g.damagedLine(t.Damaged)
	g.commitContent(t.Commit)
	g.flush()
}

// reportedAndEstimatedTokens returns the tokens, as reported and as estimated.
func (t Reasoning) reportedAndEstimatedTokens() string {
	about := "about " + plural(t.Tokens, "token")
	if t.Reported > 0 {
		return thousands(t.Reported) + " tokens reported, " + about
	}
	return about
}

// sealKind returns the kind of the seal; empty: there is none.
func (t Reasoning) sealKind() string {
	switch seal := t.Block.Form().Seal; {
	case seal.IsZero():
		return ""
	case seal.Type == content.Signature:
		return "signed"
	default:
		return seal.Type.String()
	}
}

type reasoningJSON struct {
	ID         objects.ID  `json:"id"`
	Session    string      `json:"session,omitempty"`
	Turn       int         `json:"turn"`
	Model      string      `json:"model,omitempty"`
	Provider   string      `json:"provider,omitempty"`
	ResponseID string      `json:"response_id,omitempty"`
	Time       string      `json:"time"`
	Tokens     int         `json:"tokens"`
	Reported   int64       `json:"reported,omitempty"`
	Duration   int64       `json:"duration_ms,omitempty"`
	Format     string      `json:"format,omitempty"`
	Source     string      `json:"source,omitempty"`
	Seal       *sealJSON   `json:"seal,omitempty"`
	Incomplete bool        `json:"incomplete,omitempty"`
	Purged     *purgedJSON `json:"pruned,omitempty"`
	Damaged    string      `json:"damaged,omitempty"`
	Text       string      `json:"text"`
	TextBase64 string      `json:"text_base64,omitempty"`
	Parts      []string    `json:"parts,omitempty"`
}

// ReasoningJSON returns a block of reasoning with the number of its turn, for programs.
func ReasoningJSON(t Reasoning) any {
	o, text, form := t.Origin(), t.Block.String(), t.Block.Form()
	return reasoningJSON{
		ID: t.Commit.ID, Session: o.Session, Turn: t.Turn, Model: o.Model, Provider: o.Provider, ResponseID: o.ResponseID,
		Time: jsonTime(t.Commit.Time), Tokens: t.Tokens, Reported: t.Reported, Duration: o.Duration.Milliseconds(),
		Purged: newPurged(t.Commit.Tombstone, t.Commit.Size), Damaged: damagedJSON(t.Damaged),
		Format: string(t.Block.Format), Source: t.Block.Source, Seal: newSeal(form.Seal), Incomplete: form.Incomplete,
		Text: validUTF8(text), TextBase64: base64OrEmptyIfValid(text), Parts: t.Block.Parts,
	}
}
