package importers

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm/providers"
)

// claudeLine is what is looked at of one line of a session log. A line is one
// record, and for an answer one block of it.
type claudeLine struct {
	kind, subtype             string
	uuid, parent, before      string // before: what a compaction stands for
	session, agent            string
	side, meta, compact       bool
	orphan                    bool // it says that it has no parent
	time                      time.Time
	cwd, branch, version, ask string
	message                   rawjson.Value
}

// isClaudeCode reports whether a value is a record of a session log, or a document
// of such.
func isClaudeCode(v rawjson.Value) bool {
	if v.Get("loglines").Kind() == rawjson.KindArray {
		return true
	}
	if v.Get("type").Kind() != rawjson.KindString {
		return false
	}
	for _, key := range []string{"sessionId", "leafUuid", "parentUuid", "snapshot"} {
		if v.Get(key) != nil {
			return true
		}
	}
	return false
}

// readClaudeCode reads a session log, the first value of which is v.
func readClaudeCode(l *lines, v rawjson.Value, whole bool, out *sink) error {
	c := &claudeCode{
		out: out, at: map[string]place{}, calls: map[string]string{}, current: map[string]*thread{}, counts: map[string]int{},
	}
	defer c.end()
	if list := v.Get("loglines"); list != nil {
		for e := range list.Elements() {
			c.n++
			if err := c.line(e); err != nil {
				l.passOver(l.wrong(err))
			}
		}
		return nil
	}
	for {
		c.n, c.nth = l.n, l.nth
		if err := c.line(v); err != nil {
			l.passOver(l.wrong(err))
		}
		if whole || out.stopped {
			return nil
		}
		var err error
		if v, err = l.value(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func readClaudeLine(v rawjson.Value) (l claudeLine) {
	texts := map[string]*string{
		"type": &l.kind, "subtype": &l.subtype, "uuid": &l.uuid, "parentUuid": &l.parent, "logicalParentUuid": &l.before,
		"sessionId": &l.session, "agentId": &l.agent, "cwd": &l.cwd, "gitBranch": &l.branch, "version": &l.version, "requestId": &l.ask,
	}
	for key, m := range v.Members() {
		switch key {
		case "message":
			l.message = m
		case "isSidechain":
			l.side = m.Bool()
		case "isMeta":
			l.meta = m.Bool()
		case "isCompactSummary":
			l.compact = m.Bool()
		case "timestamp":
			l.time = readTime(m.Text())
		case "parentUuid":
			l.parent, l.orphan = m.Text(), m.Kind() == rawjson.KindNull
		default:
			if at := texts[key]; at != nil {
				*at = name(m)
			}
		}
	}
	return l
}

// readTime reads a time. One that is malformed, or in UTC before the year 0 or after the
// year 9999, is the zero time.
func readTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if year := t.UTC().Year(); err != nil || year < 0 || year > 9999 {
		return time.Time{}
	}
	return t
}

// maxName is the most bytes of an id, a model, a finish reason or a directory: a longer
// one is none.
const maxName = 64 << 10

// name reads an id, or another name.
func name(v rawjson.Value) string {
	if s := v.Text(); len(s) <= maxName {
		return s
	}
	return ""
}

// synthetic is the model of words that the program wrote in the place of one.
const synthetic = "<synthetic>"

// blocks reads what a line says, and the place of an answer: the id that the lines
// of one message share.
func (l *claudeLine) blocks() ([]content.Block, error) {
	var message rawjson.Object
	message.SetString("role", l.kind)
	message.Set("content", l.message.Get("content"))
	model := l.message.Get("model").Text()
	var blocks []content.Block
	for m, err := range providers.DecodeMessages("messages", "anthropic", model, slices.Values([]json.RawMessage{json.RawMessage(message.Bytes())})) {
		if err != nil {
			return nil, err
		}
		for _, b := range m.Blocks {
			if b.Kind() == content.KindAssistant && model == synthetic {
				b = content.Note(b.String()) // no model said it, and none is to read it
			}
			blocks = append(blocks, b)
		}
	}
	return blocks, nil
}

// isMessage reports whether a line is part of the conversation. Caveats and the output of
// local commands (meta) are not, nor is what the program notes for itself.
func (l *claudeLine) isMessage() bool {
	return (l.kind == "user" || l.kind == "assistant") && !l.meta && l.message.Get("content") != nil
}

// entry is a message without its blocks.
func (l *claudeLine) entry(line int) Entry {
	e := Entry{Importer: string(ClaudeCode), Session: l.session, Line: line, Compaction: l.compact, Original: map[string]string{}}
	for key, value := range map[string]string{
		"session": l.session, "uuid": l.uuid, "parent": l.parent, "agent": l.agent,
		"cwd": l.cwd, "git_branch": l.branch, "version": l.version, "request": l.ask,
	} {
		if value != "" {
			e.Original[key] = value
		}
	}
	if l.kind == "assistant" && l.message.Get("model").Text() != synthetic {
		e.Provider, e.Dialect = "anthropic", "messages"
	}
	return e
}

// cost reads what a message tells of the response it was. Each of its lines
// repeats it, the last one counts.
func (e *Entry) cost(message rawjson.Value) {
	e.Model, e.ResponseID = name(message.Get("model")), name(message.Get("id"))
	if why := name(message.Get("stop_reason")); why != "" {
		e.Finish = why
	}
	u := message.Get("usage")
	if e.Provider == "" || u.Kind() != rawjson.KindObject {
		return
	}
	n := func(keys ...string) int64 {
		n, _ := u.Get(keys...).Int()
		return content.BoundedTokens(n)
	}
	e.Usage = content.Usage{
		Output: n("output_tokens"), Reasoning: n("output_tokens_details", "thinking_tokens"),
		Cached: n("cache_read_input_tokens"), CacheWrite: n("cache_creation_input_tokens"),
		Raw: append([]byte(nil), u...),
	}
	e.Usage.Input = n("input_tokens") + e.Usage.Cached + e.Usage.CacheWrite
	e.Usage = e.Usage.Bounded()
}

// threadName makes a name of what a log says.
func threadName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, s)
}
