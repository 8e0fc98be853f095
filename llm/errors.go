package llm

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The errors of a request to a model, for errors.Is.
var (
	// ErrTruncated: the answer ended before the provider said so.
	ErrTruncated = errors.New("the answer breaks off")
	// ErrProtocol: the provider sent what its wire format does not allow.
	ErrProtocol = errors.New("not what the provider's format allows")
	// ErrNoKey: the provider wants a key and the client has none.
	ErrNoKey = errors.New("no API key")
	// ErrTimeout: the provider was silent for too long.
	ErrTimeout = errors.New("no answer in time")
	// ErrTooLong: an answer, or one event of it, has more than 64 MiB.
	ErrTooLong = errors.New("longer than 64 MiB")
)

// APIError is a refusal or a failure that the provider reported, with an HTTP status or
// inside a stream.
type APIError struct {
	Provider   string
	Status     int    // HTTP status; 0 when it came inside a stream
	Type       string // the provider's type or code of the error
	Message    string // the provider's message
	Param      string // the request field it names
	RequestID  string
	RetryAfter time.Duration // how long it wants to be left alone
	Raw        []byte        // the error as JSON, where it was JSON
}

// Error returns the provider's message.
func (e *APIError) Error() string {
	var b strings.Builder
	b.WriteString(e.Provider)
	if e.Provider == "" {
		b.WriteString("provider")
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, " answered %d", e.Status)
	}
	if e.Type != "" {
		fmt.Fprintf(&b, " (%s)", e.Type)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	return b.String()
}

// Temporary reports whether a later retry may succeed: for rate limits, overload, and
// failures of the provider.
func (e *APIError) Temporary() bool {
	return e.Status == 408 || e.Status == 409 || e.Status == 429 || e.Status >= 500
}

// NetworkError is the error for a provider that could not be reached, or whose response
// broke off.
type NetworkError struct {
	Provider string
	Host     string // where the request went
	Err      error  // the network error
}

// Error names the host and the network error.
func (e *NetworkError) Error() string {
	return fmt.Sprintf("reach %s at %s: %v", e.Provider, e.Host, e.Err)
}

// Unwrap returns the network error.
func (e *NetworkError) Unwrap() error { return e.Err }
