package providers

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/rawjson"
)

// messagesBudgets is how many tokens an effort may think, where a model takes no
// word for it. Less than the first is refused.
var messagesBudgets = map[string]int{"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32000}

// messagesThinking writes how much the model is to think, if anything is told,
// and returns the output limit. On the wire that counts the thoughts too, and has
// to be more than their budget: where it is not, it is for the answer alone.
func messagesThinking(t target, s llm.Settings, body *rawjson.Object) (limit int) {
	limit = s.MaxOutputTokens
	if limit <= 0 {
		limit = messagesLimit
	}
	r := s.Reasoning
	var o rawjson.Object
	switch budget := r.MaxTokens; {
	case budget > 0:
		if limit <= budget {
			limit += budget
		}
		o.SetString("type", "enabled")
		o.SetInt("budget_tokens", int64(budget))
	case r.Effort == "none":
		o.SetString("type", "disabled")
		body.Set("thinking", o.Bytes())
		return limit
	case messagesBudgets[r.Effort] == 0:
		return limit
	case adaptive(t.model):
		o.SetString("type", "adaptive")
		var effort rawjson.Object
		effort.SetString("effort", strings.Replace(r.Effort, "minimal", "low", 1))
		body.Set("output_config", effort.Bytes())
		if !r.Disabled && r.Summary != "none" {
			o.SetString("display", "summarized")
		}
	default:
		budget = messagesBudgets[r.Effort]
		if s.MaxOutputTokens <= 0 {
			limit += budget
		} else if least := messagesBudgets["minimal"]; limit <= least {
			return limit // there is no room to think
		} else if budget >= limit {
			budget = max(limit/2, least)
		}
		o.SetString("type", "enabled")
		o.SetInt("budget_tokens", int64(budget))
	}
	body.Set("thinking", o.Bytes())
	return limit
}

// adaptive tells whether a model is told its effort by a word. Those of Anthropic
// up to version 4.5, and all of others, want a budget.
func adaptive(model string) bool {
	name := strings.ToLower(model)
	at := strings.Index(name, "claude")
	if at < 0 {
		return false
	}
	var version []int // the numbers of the name, dates and revisions left out
	for _, word := range strings.FieldsFunc(name[at:], func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.Atoi(word); err == nil && len(word) <= 2 {
			version = append(version, n)
		}
	}
	switch {
	case len(version) == 0:
		return false
	case version[0] != 4:
		return version[0] > 4
	}
	return len(version) > 1 && version[1] > 5
}

func messagesTools(tools []llm.Tool) rawjson.Value {
	var list rawjson.Array
	for _, t := range tools {
		if len(t.Native) > 0 {
			list.Add(t.Native)
			continue
		}
		var o rawjson.Object
		o.SetString("name", t.Name)
		if t.Description != "" {
			o.SetString("description", t.Description)
		}
		if o.Set("input_schema", t.Schema); len(t.Schema) == 0 {
			o.Set("input_schema", rawjson.Value(`{"type":"object"}`))
		}
		list.Add(o.Bytes())
	}
	return list.Bytes()
}

// messagesChoice is the tool choice; nil when it is unsaid.
func messagesChoice(choice string) rawjson.Value {
	var o rawjson.Object
	switch choice {
	case "":
		return nil
	case "auto", "none":
		o.SetString("type", choice)
	case "required":
		o.SetString("type", "any")
	default:
		o.SetString("type", "tool")
		o.SetString("name", choice)
	}
	return o.Bytes()
}

// number is a number of the settings, in as few digits as say it.
func number(f float64) rawjson.Value {
	return strconv.AppendFloat(nil, f, 'f', -1, 64)
}

// messagesResultContent is what a tool gave; nil when it gave nothing. Parts of
// another dialect are sent as the JSON they are.
func messagesResultContent(r content.ToolResult, own bool) rawjson.Value {
	if v, err := rawjson.Parse(r.Parts); err == nil && (own || messagesParts(v)) {
		return v
	}
	text := r.String()
	if text == "" {
		if !r.IsError {
			return nil
		}
		text = "error" // one without a word is refused
	}
	return rawjson.AppendString(nil, text)
}

// messagesParts tells whether v is content as the format has it.
func messagesParts(v rawjson.Value) bool {
	if v.Kind() != rawjson.KindArray {
		return false
	}
	for part := range v.Elements() {
		switch part.Get("type").Text() {
		case "text":
			if part.Get("text").Kind() != rawjson.KindString {
				return false
			}
		case "image", "document":
			if part.Get("source").Kind() != rawjson.KindObject {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// messagesMedia writes an image or a file: its bytes, or where they lie.
func messagesMedia(m content.Media, o *rawjson.Object) {
	o.SetString("type", "document")
	if m.Of == content.KindImage {
		o.SetString("type", "image")
	} else if m.Name != "" {
		o.SetString("title", m.Name)
	}
	var source rawjson.Object
	media, data, inline := inlineData(m)
	switch {
	case !inline && m.URL == "":
		return // its source is in what came with it
	case !inline:
		source.SetString("type", "url")
		source.SetString("url", m.URL)
	case m.Of == content.KindFile && media != "application/pdf" && utf8.ValidString(data):
		source.SetString("type", "text")
		source.SetString("media_type", "text/plain")
		source.SetString("data", data)
	default:
		source.SetString("type", "base64")
		source.SetString("media_type", media)
		source.SetString("data", base64.StdEncoding.EncodeToString([]byte(data)))
	}
	o.Set("source", source.Bytes())
}

// inlineData is the bytes of m, be they in a data URL, and their type, which is
// found by looking when nobody tells.
func inlineData(m content.Media) (media, data string, ok bool) {
	media, data = m.MediaType, m.Data
	if rest, isData := strings.CutPrefix(m.URL, "data:"); isData && data == "" {
		head, body, _ := strings.Cut(rest, ",")
		kind, coded := strings.CutSuffix(head, ";base64")
		if b, err := base64.StdEncoding.DecodeString(body); coded && err == nil {
			media, data = orElse(media, kind), string(b)
		}
	}
	if data == "" {
		return "", "", false
	}
	if media == "" {
		media, _, _ = strings.Cut(http.DetectContentType([]byte(data)), ";")
	}
	return media, data, true
}
