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

// apiError reads an error that a provider sent: an object with a member error, or
// what such a member holds. What is not there stays empty.
func NewAPIError(provider string, v rawjson.Value) *llm.APIError {
	if v.Kind() == rawjson.KindArray {
		v = v.At(0)
	}
	if v.Get("error") != nil {
		v = v.Get("error")
	}
	e := &llm.APIError{Provider: provider, Raw: bytes.Clone(v)}
	if v.Kind() != rawjson.KindObject {
		e.Message = rawjson.TextOrJSON(v)
		return e
	}
	for _, key := range []string{"type", "status", "code", "__type"} {
		if e.Type == "" {
			e.Type = rawjson.TextOrJSON(v.Get(key))
		}
	}
	for _, key := range []string{"message", "Message", "detail", "error_description"} {
		if e.Message == "" {
			e.Message = rawjson.TextOrJSON(v.Get(key))
		}
	}
	e.Param = rawjson.TextOrJSON(v.Get("param"))
	e.RetryAfter = retryDelay(v.Get("details"))
	return e
}

// retryDelay is how long Google wants to be left alone, as the details of an error
// say it: {"@type":"....RetryInfo","retryDelay":"34.4s"}.
func retryDelay(details rawjson.Value) time.Duration {
	for d := range details.Elements() {
		if after, err := time.ParseDuration(d.Get("retryDelay").Text()); err == nil && after > 0 {
			return after
		}
	}
	return 0
}

// failed is the error that a framing has a form of its own for.
func frameError(provider string, f framing.Frame) *llm.APIError {
	v, err := rawjson.Parse(f.Data)
	if err != nil {
		v = rawjson.AppendString(nil, string(f.Data))
	}
	e := NewAPIError(provider, v)
	e.Type = cmp.Or(f.Event, e.Type)
	return e
}

// broken is the error of a body that could not be read to its end.
func streamError(err error) error {
	for _, plain := range []error{context.Canceled, context.DeadlineExceeded, llm.ErrTimeout, llm.ErrTooLong, llm.ErrProtocol} {
		if errors.Is(err, plain) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", llm.ErrTruncated, err)
}
