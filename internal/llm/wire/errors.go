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

// HasError reports whether a body or an event has a member error that is an object or, as xAI
// sends it, a text that is not empty.
func HasError(v rawjson.Value) bool {
	e := v.Get("error")
	return e.Kind() == rawjson.KindObject || e.Kind() == rawjson.KindString && e.Text() != ""
}

// NewAPIError decodes an error from a provider: an object with a member error, or the value
// of such a member. Fields that the error does not have stay empty.
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

// firstText returns the first member under keys that is not empty, as text.
func firstText(v rawjson.Value, keys ...string) string {
	for _, key := range keys {
		if text := rawjson.TextOrJSON(v.Get(key)); text != "" {
			return text
		}
	}
	return ""
}

// retryDelay returns the delay before a retry that the details of a Google error give; 0 if
// they give none: {"@type":"....RetryInfo","retryDelay":"34.4s"}.
func retryDelay(details rawjson.Value) time.Duration {
	for d := range details.Elements() {
		if after, err := time.ParseDuration(d.Get("retryDelay").Text()); err == nil && after > 0 {
			return after
		}
	}
	return 0
}

// errorOfFailedFrame returns the error in a frame that is Failed.
func errorOfFailedFrame(provider string, f framing.Frame) *llm.APIError {
	v, err := rawjson.Parse(f.Data)
	if err != nil {
		v = rawjson.AppendString(nil, string(f.Data))
	}
	e := NewAPIError(provider, v)
	e.Type = cmp.Or(f.Event, e.Type)
	return e
}

// streamError returns the error for a body that could not be read to its end: err itself if it
// is one of the known errors, else err wrapped in ErrTruncated.
func streamError(err error) error {
	for _, plain := range []error{context.Canceled, context.DeadlineExceeded, llm.ErrTimeout, llm.ErrTooLong, llm.ErrProtocol} {
		if errors.Is(err, plain) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", llm.ErrTruncated, err)
}
