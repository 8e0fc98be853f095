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

// readMessages reads message arrays and request bodies: one, or one a line, or an
// array of them; or one array with a message a line. v is the first value.
func readMessages(l *lines, v rawjson.Value, whole bool, f Format, out *sink) error {
	m := messageReader{l: l, format: f, out: out, most: mostHeld}
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
			m.conversation(e)
		}
		return nil
	}
	for {
		if m.conversation(v); whole || out.stopped {
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

// isBody reports whether a value is a request body.
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
	most   int // bytes of lines that are held to find out what they are

	line    int    // of the message that is read, or that the conversation begins at
	session string // of the conversation
	id      string // of its last block
	hashed  []byte // what that id is made of
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
		f = detectFormat(v)
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
	var l listShape
	for e := range v.Elements() {
		if l.add(e); l.items {
			break
		}
	}
	key, api := l.dialect(m.format)
	var o rawjson.Object
	o.Set(key, v)
	req, err := providers.DecodeRequest(api, "", o.Bytes())
	return decoded{req, api}, err
}

// conversation puts out a conversation.
func (m *messageReader) conversation(v rawjson.Value) {
	m.n++
	m.line = m.l.n
	req, err := m.decode(v)
	if err == nil && len(req.Messages) == 0 {
		err = errEmpty
	}
	if err != nil {
		m.l.passOver(m.l.wrong(err))
		return
	}
	m.begin(m.n + m.l.lost)
	for _, said := range req.Messages {
		m.message(said, req.api, req.Settings.Model)
	}
}

var errEmpty = errors.New("a conversation without a message")

// begin begins the n-th conversation of the file, of which those count too that cannot be
// read: the others keep their names when the file is mended.
func (m *messageReader) begin(n int) {
	if n > 1 {
		m.session = strconv.Itoa(n)
	}
	m.id = ""
}

// message puts out a message, which a model that may be unknown said or was asked.
func (m *messageReader) message(said content.Message, api, model string) {
	e := Entry{Importer: "messages", Session: m.session, Line: m.line, Parts: make([]Part, len(said.Blocks))}
	if said.Role == content.RoleAssistant {
		e.Dialect, e.Model = api, model
	}
	for i, b := range said.Blocks {
		m.id = m.chainedID(said.Role, b)
		e.Parts[i] = Part{ID: m.id, Block: b}
	}
	m.out.put(e)
}

// chainedID returns the id of a block in a source that has none: what it says, and all
// before it. So a conversation that has grown keeps its ids, and another one that
// begins alike has other ids from where it differs. The dialect does not count: it
// may show only later.
func (m *messageReader) chainedID(role content.Role, b content.Block) string {
	m.hashed = m.hashed[:0]
	m.addHashed(m.id, role.String(), b.Kind().String(), b.String(), b.Form().Seal.Data)
	switch b := b.(type) {
	case content.ToolCall:
		m.addHashed(b.CallID, b.Name)
	case content.ToolResult:
		m.addHashed(b.CallID)
	case content.Media:
		m.addHashed(b.Data)
	}
	sum := sha256.Sum256(m.hashed)
	return hex.EncodeToString(sum[:16])
}

func (m *messageReader) addHashed(list ...string) {
	for _, s := range list {
		m.hashed = append(append(strconv.AppendInt(m.hashed, int64(len(s)), 10), ':'), s...)
	}
}
