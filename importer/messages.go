package importer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strconv"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/llm/rawjson"
)

// readMessages reads message arrays and request bodies: one, or one a line, or an
// array of them; or one array with a message a line. v is the first value.
func readMessages(l *lines, v rawjson.Value, whole bool, f Format, out *sink) error {
	m := messageReader{l: l, format: f, out: out}
	single := v.Kind() == rawjson.KindObject && !isBody(v)
	switch {
	case single && !whole:
		return m.oneALine(v)
	case single:
		var list rawjson.Array
		list.Add(v)
		v = list.Bytes()
	case v.Kind() == rawjson.KindArray && (isBody(v.At(0)) || v.At(0).Kind() == rawjson.KindArray):
		for e := range v.Elements() {
			if err := m.conversation(e); err != nil {
				return err
			}
		}
		return nil
	}
	for {
		if err := m.conversation(v); err != nil || whole || out.left {
			return err
		}
		var err error
		if v, err = l.value(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// holder is the member of a request body that holds the conversation, and the
// dialect that calls it so; empty when the value is none. The messages of chat are
// those of Anthropic too.
func holder(v rawjson.Value) (key, api string) {
	switch {
	case v.Get("messages").At(0).Get("role").Kind() == rawjson.KindString:
		return "messages", "chat"
	case v.Get("input").At(0).Get("role") != nil, v.Get("input").At(0).Get("type") != nil:
		return "input", "responses"
	case v.Get("contents").At(0).Get("parts") != nil:
		return "contents", "gemini"
	}
	return "", ""
}

// isBody tells whether a value is a request body.
func isBody(v rawjson.Value) bool {
	key, _ := holder(v)
	return key != ""
}

// messageReader reads conversations one after the other.
type messageReader struct {
	l      *lines
	format Format
	out    *sink
	n      int // conversations so far
}

// oneALine reads a conversation with a message on each line. It is decoded as a
// whole: what a message means can depend on those before it.
func (m *messageReader) oneALine(v rawjson.Value) error {
	var list rawjson.Array
	var lines []int // that the messages are on
	var err error
	for size := 0; err == nil; {
		if size += len(v); size > maxLine {
			err = m.l.wrong(errTooLong)
			break
		}
		list.Add(v)
		lines = append(lines, m.l.n)
		v, err = m.l.value()
	}
	if err == io.EOF {
		err = nil
	}
	all := list.Bytes()
	req, bad := m.decode(all)
	if bad != nil {
		if all, bad = m.readable(all, lines, bad); all.At(0) == nil {
			return bad
		}
		if req, err = m.decode(all); err != nil {
			return m.l.wrong(err)
		}
		err = bad
	}
	if bad := m.put(req); bad != nil {
		return bad
	}
	return err
}

// readable is the messages before the first that cannot be decoded, and where that
// is; why is the error of all of them.
func (m *messageReader) readable(all rawjson.Value, lines []int, why error) (rawjson.Value, error) {
	var list rawjson.Array
	n := 0
	for v := range all.Elements() {
		var one rawjson.Array
		one.Add(v)
		if _, err := m.decode(one.Bytes()); err != nil {
			return list.Bytes(), &LineError{File: m.l.file, Line: lines[n], Cause: err}
		}
		list.Add(v)
		n++
	}
	return nil, m.l.wrong(why)
}

// decoded is a conversation and whose format it is in.
type decoded struct {
	*llm.Request
	api string
}

// decode reads a request body or an array of messages.
func (m *messageReader) decode(v rawjson.Value) (decoded, error) {
	if v.Kind() == rawjson.KindArray {
		return m.decodeList(v)
	}
	f := m.format
	if f == Auto {
		f = spoken(v)
	}
	api := "messages"
	if f == OpenAI {
		api = "chat"
		if _, other := holder(v); other != "" {
			api = other
		}
	}
	req, err := providers.DecodeRequest(api, "", v)
	return decoded{req, api}, err
}

// decodeList reads an array of messages.
func (m *messageReader) decodeList(v rawjson.Value) (decoded, error) {
	f, items := listed(v)
	if m.format != Auto {
		f = m.format
	}
	key, api := "messages", "chat"
	switch {
	case m.format != Anthropic && items:
		key, api = "input", "responses"
	case f == Anthropic:
		api = "messages"
	}
	var o rawjson.Object
	o.Set(key, v)
	req, err := providers.DecodeRequest(api, "", o.Bytes())
	return decoded{req, api}, err
}

// conversation puts out a conversation.
func (m *messageReader) conversation(v rawjson.Value) error {
	req, err := m.decode(v)
	if err != nil {
		return m.l.wrong(err)
	}
	return m.put(req)
}

// put puts out what was decoded.
func (m *messageReader) put(req decoded) error {
	if m.n++; len(req.Messages) == 0 {
		return m.l.wrong(errors.New("a conversation without a message"))
	}
	id, session := "", ""
	if m.n > 1 {
		session = strconv.Itoa(m.n)
	}
	for _, said := range req.Messages {
		e := Entry{Importer: "messages", Session: session, Line: m.l.n}
		if said.Role == content.RoleAssistant {
			e.Dialect, e.Model = req.api, req.Settings.Model
		}
		for _, b := range said.Blocks {
			id = chained(id, said.Role, b)
			e.Parts = append(e.Parts, Part{ID: id, Block: b})
		}
		m.out.put(e)
	}
	return nil
}

// chained is the id of a block in a source that has none: what it says, and all
// before it. So a conversation that has grown keeps its ids, and another one that
// begins alike has other ids from where it differs. The dialect does not count: it
// may show only later.
func chained(before string, role content.Role, b content.Block) string {
	said := []string{before, role.String(), b.Kind().String(), b.String(), b.Form().Seal.Data}
	switch b := b.(type) {
	case content.ToolCall:
		said = append(said, b.CallID, b.Name)
	case content.ToolResult:
		said = append(said, b.CallID)
	case content.Media:
		said = append(said, b.Data)
	}
	var text []byte
	for _, s := range said {
		text = append(append(strconv.AppendInt(text, int64(len(s)), 10), ':'), s...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
