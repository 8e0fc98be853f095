// Package framing cuts a response body into JSON texts, whatever it is wrapped in:
// one JSON text, server-sent events, a JSON array, JSON lines, or Amazon's binary
// event stream. [Read] detects the framing and yields each text as soon as it is
// whole. It does not parse the texts.
package framing
