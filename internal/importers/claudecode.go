package importers

import (
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm/providers"
)

// claudeLine has the used fields of one line of a session log. A line is one record. A response
// has one line for each of its blocks.
type claudeLine struct {
	kind, subtype                   string
	uuid, parent, before            string // before: last line that a compaction replaces
	session, agent                  string
	side, meta, compact             bool
	orphan                          bool // its parent is null
	time                            time.Time
	cwd, branch, version, requestID string
	message                         rawjson.Value
}

// isClaudeCode reports whether a value is a record of a session log, or a document with an array
// of records.
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

// readClaudeCode reads a session log. v is its first value; onlyValue means that the file has no
// other.
func readClaudeCode(l *lines, v rawjson.Value, onlyValue bool, out *sink) error {
	c := newClaudeCode(out)
	defer c.flushAll()
	if list := v.Get("loglines"); list != nil {
		for e := range list.Elements() {
			c.n++
			if err := c.addLine(e); err != nil {
				l.recordSkipped(l.lineError(err))
			}
		}
		return nil
	}
	for {
		c.n, c.nth = l.lineNumber, l.valueOnLine
		if err := c.addLine(v); err != nil {
			l.recordSkipped(l.lineError(err))
		}
		if onlyValue || out.stopped {
			return nil
		}
		var err error
		if v, err = l.nextValidValue(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func readClaudeLine(v rawjson.Value) (l claudeLine) {
	texts := map[string]*string{
		"type": &l.kind, "subtype": &l.subtype, "uuid": &l.uuid, "parentUuid": &l.parent, "logicalParentUuid": &l.before,
		"sessionId": &l.session, "agentId": &l.agent, "cwd": &l.cwd, "gitBranch": &l.branch, "version": &l.version, "requestId": &l.requestID,
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
			l.time = parseTimeOrZero(m.Text())
		case "parentUuid":
			l.parent, l.orphan = m.Text(), m.Kind() == rawjson.KindNull
		default:
			if at := texts[key]; at != nil {
				*at = textUnlessLong(m)
			}
		}
	}
	return l
}

// parseTimeOrZero parses a time. It returns the zero time if the text is malformed, or if the year in UTC
// is not from 0 to 9999.
func parseTimeOrZero(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if year := t.UTC().Year(); err != nil || year < 0 || year > 9999 {
		return time.Time{}
	}
	return t
}

// maxName is the largest length in bytes of an id, a model, a finish reason or a directory. A
// longer one is ignored.
const maxName = 64 << 10

// textUnlessLong returns the text of an id or another name; empty if it is longer than maxName.
func textUnlessLong(v rawjson.Value) string {
	if s := v.Text(); len(s) <= maxName {
		return s
	}
	return ""
}

// synthetic is the model name in lines that Claude Code itself wrote in place of a response.
const synthetic = "<synthetic>"

// decodeBlocks returns the content blocks of a line.
func (l *claudeLine) decodeBlocks() ([]content.Block, error) {
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
				b = content.Note(b.String()) // no model wrote it, and no model should read it
			}
			blocks = append(blocks, b)
		}
	}
	return blocks, nil
}

// isMessage reports whether a line is part of the conversation. Caveats and the output of local
// commands (meta) are not, nor are the program's own records.
func (l *claudeLine) isMessage() bool {
	return (l.kind == "user" || l.kind == "assistant") && !l.meta && l.message.Get("content") != nil
}

// responseID returns the id of the response that a line is part of; empty for a line of the user.
func (l *claudeLine) responseID() string {
	if l.kind != "assistant" {
		return ""
	}
	return l.message.Get("id").Text()
}

// entryWithoutParts returns an entry for the message of the line, without its blocks.
func (l *claudeLine) entryWithoutParts(line int) Entry {
	e := Entry{Importer: string(ClaudeCode), Session: l.session, Line: line, Compaction: l.compact, Original: map[string]string{}}
	for key, value := range map[string]string{
		"session": l.session, "uuid": l.uuid, "parent": l.parent, "agent": l.agent,
		"cwd": l.cwd, "git_branch": l.branch, "version": l.version, "request": l.requestID,
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

// setResponse sets the model, response id, finish reason and usage from a line of a response. Each
// line of the response repeats them, and the last one counts.
func (e *Entry) setResponse(message rawjson.Value) {
	e.Model, e.ResponseID = textUnlessLong(message.Get("model")), textUnlessLong(message.Get("id"))
	if why := textUnlessLong(message.Get("stop_reason")); why != "" {
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
