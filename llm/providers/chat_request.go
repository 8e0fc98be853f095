package providers

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// requestChat reads a request body.
func requestChat(t target, v rawjson.Value) (*llm.Request, error) {
	messages := v.Get("messages")
	if messages.Kind() != rawjson.KindArray {
		return nil, errNoMessages
	}
	v = rawjson.Without(v, "messages") // which are most of it, and not to be passed over for every field
	req := &llm.Request{Settings: chatAsked(t.quirks, v), Tools: askedTools(v.Get("tools"), functionTools), Stream: v.Get("stream").Bool()}
	var err error
	if req.Messages, err = readTalk(talkChat(t), "messages", messages); err != nil {
		return nil, err
	}
	if len(req.Tools) == 0 && v.Get("tools") != nil {
		return req, t.settle(req, v, "messages")
	}
	return req, t.settle(req, v, "messages", "tools")
}

// chatAsked reads the settings.
func chatAsked(w quirks, v rawjson.Value) llm.Settings {
	s := llm.Settings{
		Model: v.Get("model").Text(), MaxOutputTokens: askedLimit(v.Get(cmp.Or(w.limit, "max_tokens"))),
		Temperature: askedNumber(v.Get("temperature")), ToolChoice: v.Get("tool_choice").Text(),
	}
	if s.ToolChoice == "" {
		s.ToolChoice = v.Get("tool_choice", "function", "name").Text()
	}
	if w.effort != "" {
		s.Reasoning.Effort, s.Reasoning.MaxTokens = v.Get(w.effort, "effort").Text(), askedLimit(v.Get(w.effort, "max_tokens"))
		return s
	}
	s.Reasoning.Effort = v.Get("reasoning_effort").Text()
	if w.budget != "" {
		s.Reasoning.MaxTokens = askedLimit(v.Get(w.budget))
	}
	return s
}

// chatRequest reads the messages of a request.
type chatRequest struct {
	target
	list   []content.Message
	n      int
	legacy string // id of the last call in function_call
}

func talkChat(t target) talk { return &chatRequest{target: t} }

func (q *chatRequest) next(v rawjson.Value) error {
	err := q.message(v)
	q.n++
	return err
}

func (q *chatRequest) end() error { return nil }

func (q *chatRequest) gathered() *[]content.Message { return &q.list }

// message reads one message.
func (q *chatRequest) message(v rawjson.Value) error {
	if q.plain(v) {
		return nil
	}
	return q.long(v)
}

// long reads a message that may have anything in it.
func (q *chatRequest) long(v rawjson.Value) error {
	switch role := v.Get("role").Text(); role {
	case "system", "developer":
		q.list = say(q.list, content.RoleSystem, q.words(content.KindSystem, v)...)
	case "user":
		q.list = say(q.list, content.RoleUser, q.words(content.KindUser, v)...)
	case "assistant", "model":
		return q.answer(v)
	case "tool", "function":
		q.list = say(q.list, content.RoleTool, q.result(role, v))
	default:
		return fmt.Errorf("want a message of role system, user, assistant or tool, have %q", excerpt(v))
	}
	return nil
}

// plain reads a message of a user or of the model that is words and nothing else, as
// most are: what the long way would make of it too. Words that may have think tags
// in them are left to that.
func (q *chatRequest) plain(v rawjson.Value) bool {
	var role string
	var said rawjson.Value
	n := 0
	for key, m := range v.Members() {
		switch key {
		case "role":
			role = m.Text()
		case "content":
			said = m
		}
		n++
	}
	if n != 2 || said.Kind() != rawjson.KindString {
		return false
	}
	text := content.Text{Wire: q.form(), Of: content.KindUser, Text: said.Text()}
	switch role {
	case "user":
		q.list = say(q.list, content.RoleUser, text)
	case "assistant":
		if strings.IndexByte(text.Text, '<') >= 0 || strings.TrimSpace(text.Text) == "" {
			return false
		}
		text.Of = content.KindAssistant
		q.list = say(q.list, content.RoleAssistant, text)
	default:
		return false
	}
	return true
}

// answer reads what the model said: the message of a response.
func (q *chatRequest) answer(v rawjson.Value) error {
	var choice, body rawjson.Object
	var choices rawjson.Array
	choice.Set("message", v)
	choices.Add(choice.Bytes())
	body.SetString("id", fmt.Sprintf("message-%d", q.n)) // of calls that have none
	body.Set("choices", choices.Bytes())
	blocks, err := q.answered(body.Bytes())
	if err != nil {
		return err
	}
	for _, b := range blocks {
		if c, ok := b.(content.ToolCall); ok && c.Form().Type == chatLegacy {
			q.legacy = c.CallID
		}
	}
	q.list = say(q.list, content.RoleAssistant, blocks...)
	return nil
}

// words reads a message of words, or of a list of parts. What else it has is kept
// with its first text.
func (q *chatRequest) words(kind content.Kind, v rawjson.Value) []content.Block {
	var list []content.Block
	rest := rawjson.Without(v, "role", "content")
	if c := v.Get("content"); c.Kind() == rawjson.KindString {
		list = append(list, content.Text{Wire: q.form(), Of: kind, Text: c.Text()})
	} else {
		for part := range c.Elements() {
			list = append(list, q.part(kind, part))
		}
	}
	for i, b := range list {
		if text, ok := b.(content.Text); ok && !hollow(rest) {
			text.SetExtra(extended(text.Form().Extra, chatOfMessage, rest))
			list[i] = text
			break
		}
	}
	return list
}

// part reads a part of a content that is a list.
func (q *chatRequest) part(kind content.Kind, v rawjson.Value) content.Block {
	i := item{Value: v}
	t := i.text("type")
	if text := v.Get("text"); t == "text" && text.Kind() == rawjson.KindString {
		i.take("text")
		b := content.Text{Wire: q.form(), Of: kind, Text: text.Text()}
		b.SetExtra(i.rest())
		return b
	}
	p := chatPrompt{target: q.target}
	for _, m := range []content.Media{q.image(v), q.file(v), q.sound(v)} {
		if m.Of == 0 {
			continue
		}
		m.Wire = q.form()
		m.SetExtra(i.rest(t))
		if left := rawjson.Without(v.Get(t), "url", "filename", "file_data", "data", "format"); !hollow(left) {
			m.SetExtra(extended(m.Form().Extra, t, left))
		}
		if rawjson.Equal(p.media(m), v) {
			return m
		}
	}
	b := content.Native{Wire: q.typed(chatPart + t), JSON: string(v)}
	b.SetRole(kind.Traits().Role)
	return b
}

// image, file and sound read media; what is none has no kind.
func (q *chatRequest) image(v rawjson.Value) content.Media {
	if url := v.Get("image_url", "url").Text(); v.Get("type").Text() == "image_url" && url != "" {
		return inlined(content.Media{Of: content.KindImage, URL: url})
	}
	return content.Media{}
}

func (q *chatRequest) file(v rawjson.Value) content.Media {
	if url := v.Get("file", "file_data").Text(); v.Get("type").Text() == "file" && url != "" {
		return inlined(content.Media{Of: content.KindFile, URL: url, Name: v.Get("file", "filename").Text()})
	}
	return content.Media{}
}

func (q *chatRequest) sound(v rawjson.Value) content.Media {
	data, err := base64.StdEncoding.DecodeString(v.Get("input_audio", "data").Text())
	if v.Get("type").Text() != "input_audio" || err != nil || len(data) == 0 {
		return content.Media{}
	}
	format := strings.Replace(v.Get("input_audio", "format").Text(), "mp3", "mpeg", 1)
	return content.Media{Of: content.KindFile, MediaType: "audio/" + format, Data: string(data)}
}

// result reads what came of a call.
func (q *chatRequest) result(role string, v rawjson.Value) content.Block {
	b := content.ToolResult{Wire: q.form(), CallID: v.Get("tool_call_id").Text(), Name: v.Get("name").Text()}
	if role == "function" {
		b.CallID = q.legacy
	}
	switch c := v.Get("content"); c.Kind() {
	case rawjson.KindString:
		b.Text = c.Text()
	case rawjson.KindAbsent, rawjson.KindNull:
	default:
		b.Parts = bytes.Clone(c)
	}
	if rest := rawjson.Without(v, "role", "tool_call_id", "content", "name"); !hollow(rest) {
		b.SetExtra(extended(nil, chatOfMessage, rest))
	}
	return b
}
