package format

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Why writes the explanation of a block: the question, the reasoning, and the request that was sent.
// x is the rebuilt request; nil if there is none.
func (p *Printer) Why(w *inspect.Explanation, x *inspect.Reproduction) {
	g := p.newBuffer()
	g.add(colorize(p.styles.id, w.Commit.ID.Short()), " ")
	g.endLineWithTitleAndContentSummary(w.Commit.ID.Short()+" ", kindOrEffect(w.Commit), Commit{Commit: w.Commit})
	if w.Question != nil {
		g.field("Asked", w.Question.ID.Short()+" "+SummaryOf(w.Question, summaryCells))
	}
	g.field("By", joinNonEmpty(", ", w.Commit.Author, p.fullTime(w.Commit.Time)))
	if o := w.Commit.Origin; o != nil && (o.Model != "" || o.Provider != "") {
		g.field("Model", modelAndUsage(o))
		g.field("Took", fmt.Sprintf("%.1f s", o.Duration.Seconds()))
	}
	for _, link := range w.Links {
		for _, name := range linkNames {
			if name.link == link.Name {
				g.field(name.field, joinNonEmpty(" ", name.preposition+link.Commit.ID.Short(), SummaryOf(link.Commit, summaryCells)))
			}
		}
	}
	if x != nil {
		g.requestFields(w, x)
	}
	g.emptyLine()
	if len(w.Reasoning) == 0 {
		g.line(colorize(p.styles.dim, g.whyNoReasoning(w)))
	}
	for _, c := range w.Reasoning {
		about := ""
		if !w.Owner.IsZero() {
			about = colorize(p.styles.dim, " of the call beside it, "+w.Owner.Short())
		}
		g.line(colorize(p.styles.id, c.ID.Short()), about)
		g.commitContent(c)
	}
	g.flush()
}

// whyNoReasoning returns the reason why there is no reasoning.
func (g *lineBuffer) whyNoReasoning(w *inspect.Explanation) string {
	o := w.Commit.Origin
	switch {
	case w.Commit.Role != content.RoleAssistant && (o == nil || o.Source != commit.SourceModel):
		return "no model said this"
	case o != nil && o.UncommittedReasoning > 0:
		return plural(o.UncommittedReasoning, "block") + " of reasoning not committed, as requested"
	case o != nil && o.Usage.Reasoning > 0:
		return thousands(o.Usage.Reasoning) + " tokens of reasoning, not disclosed by " + cmp.Or(Line(o.Provider), "the provider")
	}
	return "no reasoning came before it"
}

// requestFields adds the fields about the request that was sent to the model.
func (g *lineBuffer) requestFields(w *inspect.Explanation, x *inspect.Reproduction) {
	m := w.Manifest
	g.field("Prompt", fmt.Sprintf("%s, %s, %s", m.Head.Short(), plural(len(w.Prompt.Messages), "message"), effectiveAndRawTokens(w.Prompt.Tokens)))
	g.field("Manifest", w.ManifestID.String())
	settings := maps.Clone(m.RequestSettings)
	if settings == nil {
		settings = map[string]string{}
	}
	for name, value := range map[string]string{"model": m.Model, "tool_choice": m.ToolChoice} {
		if value != "" {
			settings[name] = value
		}
	}
	if m.Options.Budget > 0 {
		settings["budget"] = fmt.Sprint(m.Options.Budget)
	}
	if m.Options.Policy.IncludeReasoning {
		settings["reasoning.include_in_context"] = "true"
	}
	if m.Options.Policy.Strip != priority.StripNone {
		settings["reasoning.strip_from_context"] = m.Options.Policy.Strip.String()
	}
	g.pairFields("Settings", settings)
	if !m.Tools.IsZero() {
		g.field("Tools", m.Tools.Short())
	}
	g.field("Body", joinNonEmpty(": ", string(x.Outcome), x.Why))
	for i, c := range w.Shaped {
		name := ""
		if i == 0 {
			name = "Shaped by:"
		}
		g.line(pad(name, fieldWidth), " ", colorize(g.styles.id, c.ID.Short()), " ", colorize(g.styles.changed, kindOrEffect(c)), colonAndSummary(c))
	}
}

// colonAndSummary returns a colon and the summary of a commit; empty if it has no summary.
func colonAndSummary(c *commit.Commit) string {
	if s := SummaryOf(c, summaryCells); s != "" {
		return ": " + s
	}
	return ""
}

type whyJSON struct {
	Commit    objects.ID            `json:"commit"`
	Kind      content.Kind          `json:"kind"`
	Question  objects.ID            `json:"question,omitzero"`
	Reasoning []whyReasoningJSON    `json:"reasoning"`
	Ref       objects.ID            `json:"reasoning_ref,omitzero"`
	Prompt    *whyPromptJSON        `json:"prompt,omitempty"`
	Settings  map[string]string     `json:"settings,omitempty"`
	Usage     content.Usage         `json:"usage,omitzero"`
	Model     string                `json:"model,omitempty"`
	Provider  string                `json:"provider,omitempty"`
	Dialect   string                `json:"dialect,omitempty"`
	Duration  int64                 `json:"duration_ms,omitempty"`
	Links     map[string]objects.ID `json:"links,omitempty"`
	Shaped    []shortCommitJSON     `json:"shaped_by,omitempty"`
}

type whyReasoningJSON struct {
	Commit     objects.ID `json:"commit"`
	Text       string     `json:"text"`
	TextBase64 string     `json:"text_base64,omitempty"`
}

type whyPromptJSON struct {
	Head     objects.ID      `json:"head"`
	Manifest objects.ID      `json:"manifest"`
	Messages int             `json:"messages"`
	Tokens   int             `json:"tokens"`
	Tools    objects.ID      `json:"tools,omitzero"`
	Body     objects.ID      `json:"body,omitzero"` // hash of the request body
	Verdict  inspect.Outcome `json:"verdict"`
	Why      string          `json:"why,omitempty"`
}

// WhyJSON returns the explanation of a block for programs. x is as in Why.
func WhyJSON(w *inspect.Explanation, x *inspect.Reproduction) any {
	v := whyJSON{Commit: w.Commit.ID, Kind: w.Commit.Kind, Reasoning: []whyReasoningJSON{}, Ref: w.Owner}
	if w.Question != nil {
		v.Question = w.Question.ID
	}
	for _, c := range w.Reasoning {
		text := c.Block.String()
		v.Reasoning = append(v.Reasoning, whyReasoningJSON{Commit: c.ID, Text: text, TextBase64: base64OrEmptyIfValid(text)})
	}
	if o := w.Commit.Origin; o != nil {
		v.Usage, v.Model, v.Provider, v.Dialect, v.Settings = o.Usage, o.Model, o.Provider, o.Dialect, o.Settings
		v.Duration = o.Duration.Milliseconds()
	}
	for _, link := range w.Links {
		if v.Links == nil {
			v.Links = map[string]objects.ID{}
		}
		v.Links[link.Name] = link.Commit.ID
	}
	if x != nil {
		m := w.Manifest
		v.Prompt = &whyPromptJSON{
			Head: m.Head, Manifest: w.ManifestID, Messages: len(w.Prompt.Messages), Tokens: w.Prompt.Tokens.Effective, Tools: m.Tools,
			Body: m.Compiled, Verdict: x.Outcome, Why: x.Why,
		}
		if m.RequestSettings != nil {
			v.Settings = m.RequestSettings
		}
	}
	if len(w.Shaped) > 0 {
		v.Shaped = newShortCommits(w.Shaped)
	}
	return v
}

// Absence writes the reason why a block is in the prompt of commit in or was left out of it.
func (p *Printer) Absence(a *inspect.Absence, in objects.ID) {
	g := p.newBuffer()
	g.add(colorize(p.styles.id, a.Commit.ID.Short()), " ")
	g.endLineWithTitleAndContentSummary(a.Commit.ID.Short()+" ", kindOrEffect(a.Commit), Commit{Commit: a.Commit})
	verb := "was left out of the prompt of "
	if a.InPrompt {
		verb = "was in the prompt of "
	}
	g.line(indent, verb, colorize(p.styles.id, in.Short()), ": ", a.Priority.String(), " (", Line(string(a.Why)), ")")
	if a.By != nil {
		by := joinNonEmpty(", ", Line(a.By.Author), p.relativeTime(a.By.Time))
		g.line(indent, "by ", colorize(p.styles.id, a.By.ID.Short()), " ", kindOrEffect(a.By), colonAndSummary(a.By), colorize(p.styles.dim, " ("+by+")"))
	}
	g.flush()
}

// AbsenceJSON returns the data of [Printer.Absence] for programs.
func AbsenceJSON(a *inspect.Absence, in objects.ID) any {
	v := struct {
		Commit objects.ID       `json:"commit"`
		Prompt objects.ID       `json:"prompt"`
		Sent   bool             `json:"sent"`
		Level  priority.Level   `json:"level"`
		Why    priority.Why     `json:"why"`
		By     *shortCommitJSON `json:"by,omitempty"`
	}{Commit: a.Commit.ID, Prompt: in, Sent: a.InPrompt, Level: a.Priority, Why: a.Why}
	if a.By != nil {
		v.By = &newShortCommits([]*commit.Commit{a.By})[0]
	}
	return v
}

// Blame writes the lines of a prompt, each with its commit, author and time.
func (p *Printer) Blame(lines []inspect.Line) {
	rows := make([][]cell, len(lines))
	for i, l := range lines {
		when := l.Commit.Time.In(p.o.Zone).Format("2006-01-02 15:04:05")
		body := p.styles.plain
		if l.Kind == content.KindReasoning {
			body = p.styles.reasoning
		}
		rows[i] = []cell{
			styledCell(p.styles.id, l.Commit.ID.Short()), styledCell(p.styles.plain, truncate(p.flatten(modelOrAuthor(l.Commit)), authorCells)),
			styledCell(p.styles.dim, when), styledCell(p.styles.forRole(l.Role), l.Kind.String()), styledCell(body, p.cleanLine(strings.ReplaceAll(l.Text, "\t", "    "))),
		}
	}
	g := p.newBuffer()
	g.table(rows)
	g.flush()
}

// authorCells is the number of cells of a name that blame shows.
const authorCells = 28

// modelOrAuthor returns the model whose response a commit is part of, otherwise its author.
func modelOrAuthor(c *commit.Commit) string {
	if c.Origin != nil && c.Origin.Model != "" && c.Op != commit.Edit {
		return c.Origin.Model
	}
	return c.Author
}

// BlameJSON returns the data of [Printer.Blame] for programs.
func BlameJSON(lines []inspect.Line) any {
	type lineJSON struct {
		Commit objects.ID   `json:"commit"`
		Block  objects.ID   `json:"block"`
		Role   content.Role `json:"role"`
		Kind   content.Kind `json:"kind"`
		Author string       `json:"author,omitempty"`
		Model  string       `json:"model,omitempty"`
		Time   string       `json:"time"`
		Text   string       `json:"text"`
		Base64 string       `json:"text_base64,omitempty"`
	}
	list := make([]lineJSON, len(lines))
	for i, l := range lines {
		list[i] = lineJSON{
			Commit: l.Commit.ID, Block: l.Block, Role: l.Role, Kind: l.Kind, Author: l.Commit.Author, Time: jsonTime(l.Commit.Time),
			Text: l.Text, Base64: base64OrEmptyIfValid(l.Text),
		}
		if l.Commit.Origin != nil {
			list[i].Model = l.Commit.Origin.Model
		}
	}
	return list
}
