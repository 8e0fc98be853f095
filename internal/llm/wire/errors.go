package wire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tract-vcs/tract/internal/llm/framing"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// HasError reports whether a body or an event holds an error: an object under error, or,
// as xAI sends it, a text.
func HasError(v rawjson.Value) bool {
	e := v.Get("error")
	return e.Kind() == rawjson.KindObject || e.Kind() == rawjson.KindString && e.Text() != ""
}

// NewAPIError reads an error that a provider sent: an object with a member error, or
// what such a member holds. What the error does not have stays empty.
func NewAPIError(provider string, v rawjson.Value) *llm.APIError {
	if v.Kind() == rawjson.KindArray {
		v = v.At(0)
	}
	whole := v
	if v.Get("error") != nil {
		v = v.Get("error")
	}
	e := &llm.APIError{Provider: provider, Raw: bytes.Clone(v)}
	if v.Kind() != rawjson.KindObject {
		e.Message, e.Type = rawjson.TextOrJSON(v), whole.Get("code").Text()
		return e
	}
	e.Type = firstText(v, "type", "status", "code", "__type")
	e.Message = firstText(v, "message", "Message", "detail", "error_description")
	e.Param = rawjson.TextOrJSON(v.Get("param"))
	e.RetryAfter = retryDelay(v.Get("details"))
	return e
}

// firstText returns the first of some members that is not empty, as a text.
func firstText(v rawjson.Value, keys ...string) string {
	for _, key := range keys {
		if text := rawjson.TextOrJSON(v.Get(key)); text != "" {
			return text
		}
	}
	return ""
}

// retryDelay returns how long Google wants to be left alone, as the details of an error
// say it: {"@type":"....RetryInfo","retryDelay":"34.4s"}.
func retryDelay(details rawjson.Value) time.Duration {
	for d := range details.Elements() {
		if after, err := time.ParseDuration(d.Get("retryDelay").Text()); err == nil && after > 0 {
			return after
		}
	}
	return 0
}

// frameError returns the error that a framing has a message type of its own for.
func frameError(provider string, f framing.Frame) *llm.APIError {
	v, err := rawjson.Parse(f.Data)
	if err != nil {
		v = rawjson.AppendString(nil, string(f.Data))
	}
	e := NewAPIError(provider, v)
	e.Type = cmp.Or(f.Event, e.Type)
	return e
}

// streamError returns the error of a body that could not be read to its end.
func streamError(err error) error {
	for _, plain := range []error{context.Canceled, context.DeadlineExceeded, llm.ErrTimeout, llm.ErrTooLong, llm.ErrProtocol} {
		if errors.Is(err, plain) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", llm.ErrTruncated, err)
}
