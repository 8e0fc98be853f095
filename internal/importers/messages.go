package importers

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strconv"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
)

// readMessages reads message arrays and request bodies: one in the file, one on each line, or an
// array of them; or one conversation with a message on each line. v is the first value; onlyValue
// means that the file has no other.
func readMessages(l *lines, v rawjson.Value, onlyValue bool, f Format, out *sink) error {
	m := messageReader{l: l, format: f, out: out, maxBufferedBytes: maxBuffered}
	single := v.Kind() == rawjson.KindObject && !isBody(v)
	switch {
	case single && !onlyValue:
		return m.readMessagePerLine(v)
	case single:
		var list rawjson.Array
		list.Add(v)
		v = list.Bytes()
	case v.Kind() == rawjson.KindArray && (isBody(v.At(0)) || v.At(0).Kind() == rawjson.KindArray):
		for e := range v.Elements() {
			m.emitConversation(e)
		}
		return nil
	}
	for {
		if m.emitConversation(v); onlyValue || out.stopped {
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

// conversationMember returns the member of a request body that holds the conversation, and the
// dialect that uses this member; empty if the value is not a request body. The member messages is
// used by the dialects chat and messages; it returns chat.
func conversationMember(v rawjson.Value) (key, dialect string) {
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

// isBody reports whether a value is a request body.
func isBody(v rawjson.Value) bool {
	key, _ := conversationMember(v)
	return key != ""
}

// messageReader reads message arrays and request bodies, one conversation after another.
type messageReader struct {
	l                *lines
	format           Format
	out              *sink
	n                int // conversations so far
	maxBufferedBytes int // largest size in bytes of the lines that are buffered until their format is known

	line      int    // line of the present message, or of the beginning of the conversation
	session   string // of the conversation
	id        string // id of its last block
	hashInput []byte // buffer with the bytes that the id is the hash of
}

// decoded is a conversation and its dialect.
type decoded struct {
	*llm.Request
	api string
}

// decodeConversation decodes a request body or an array of messages.
func (m *messageReader) decodeConversation(v rawjson.Value) (decoded, error) {
	if v.Kind() == rawjson.KindArray {
		return m.decodeList(v)
	}
	api := "messages"
	if m.format == OpenAI || m.format == Auto && !isAnthropicBody(v) {
		api = "chat"
		if _, other := conversationMember(v); other != "" {
			api = other
		}
	}
	req, err := providers.DecodeRequest(api, "", v)
	return decoded{req, api}, err
}

// decodeList decodes an array of messages.
func (m *messageReader) decodeList(v rawjson.Value) (decoded, error) {
	var l listShape
	for e := range v.Elements() {
		if l.add(e); l.isItems {
			break
		}
	}
	key, api := l.dialectFor(m.format)
	var o rawjson.Object
	o.Set(key, v)
	req, err := providers.DecodeRequest(api, "", o.Bytes())
	return decoded{req, api}, err
}

// emitConversation yields the messages of a conversation.
func (m *messageReader) emitConversation(v rawjson.Value) {
	m.n++
	m.line = m.l.lineNumber
	req, err := m.decodeConversation(v)
	if err == nil && len(req.Messages) == 0 {
		err = errEmpty
	}
	if err != nil {
		m.l.recordSkipped(m.l.lineError(err))
		return
	}
	m.beginConversation(m.n + m.l.unreadable)
	for _, said := range req.Messages {
		m.emitMessage(said, req.api, req.Settings.Model)
	}
}

var errEmpty = errors.New("a conversation without a message")

// beginConversation begins the n-th conversation of the file. Unreadable conversations count too,
// so that the others keep their names when the file is repaired.
func (m *messageReader) beginConversation(n int) {
	if n > 1 {
		m.session = strconv.Itoa(n)
	}
	m.id = ""
}

// emitMessage yields a message. model is the model of the conversation; it may be empty.
func (m *messageReader) emitMessage(said content.Message, api, model string) {
	e := Entry{Importer: "messages", Session: m.session, Line: m.line, Parts: make([]Part, len(said.Blocks))}
	if said.Role == content.RoleAssistant {
		e.Dialect, e.Model = api, model
	}
	for i, b := range said.Blocks {
		m.id = m.chainedHash(said.Role, b)
		e.Parts[i] = Part{ID: m.id, Block: b}
	}
	m.out.yieldEntry(e)
}

// chainedHash returns an id for a block of a source without ids: the hash of its content and of the
// id before it. Therefore a conversation that has grown keeps its ids, and a conversation with the
// same beginning has other ids from the first difference on. The hash does not cover the dialect,
// which may become known only later.
func (m *messageReader) chainedHash(role content.Role, b content.Block) string {
	m.hashInput = m.hashInput[:0]
	m.addHashInput(m.id, role.String(), b.Kind().String(), b.String(), b.Form().Seal.Data)
	switch b := b.(type) {
	case content.ToolCall:
		m.addHashInput(b.CallID, b.Name)
	case content.ToolResult:
		m.addHashInput(b.CallID)
	case content.Media:
		m.addHashInput(b.Data)
	}
	sum := sha256.Sum256(m.hashInput)
	return hex.EncodeToString(sum[:16])
}

func (m *messageReader) addHashInput(list ...string) {
	for _, s := range list {
		m.hashInput = append(append(strconv.AppendInt(m.hashInput, int64(len(s)), 10), ':'), s...)
	}
}
