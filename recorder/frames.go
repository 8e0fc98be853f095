package recorder

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/internal/spool"
)

// The frames of an exchange in the spool, in their order. A response has any number of
// frameCame; what is missing at the end did not come before the process ended.
const (
	frameHead   = 'q' // requestHead
	frameSent   = 'Q' // the body of the request
	frameAnswer = 'a' // responseHead
	frameCame   = 'A' // a piece of the body of the response
	frameEnd    = 'e' // end
)

// requestHead is what the spool keeps of a request beside its body.
type requestHead struct {
	On                   string // the branch that On names; may be empty
	API, Provider, Model string
	Base, Path           string
	Header               http.Header // what of the request says whose it is
	Started              time.Time
}

type responseHead struct {
	Status int
	Header http.Header
	First  time.Duration
}

type end struct {
	Duration time.Duration
	Err      string // empty: the response is whole
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types are those above
	}
	return data
}

// responseHeaders are the headers of a response that the spool keeps.
var responseHeaders = []string{"Content-Encoding", "Content-Type"}

func (x *exchange) answerHead() []byte {
	h := http.Header{}
	for _, name := range responseHeaders {
		if value := x.response.Get(name); value != "" {
			h.Set(name, value)
		}
	}
	for name := range kept {
		if value := x.response.Get(name); value != "" {
			h.Set(name, x.hide(value))
		}
	}
	return encode(responseHead{Status: x.status, Header: h, First: x.first})
}

func (x *exchange) endHead() []byte {
	e := end{Duration: x.duration}
	if x.err != nil {
		e.Err = x.hide(x.err.Error())
	}
	return encode(e)
}

// spool adds a frame to the file of the exchange.
func (x *exchange) spool(kind byte, data []byte) {
	x.file.Write(spool.Frame{Kind: kind, Data: data}, nil)
}

// clean returns what makes frames as they are written: without the secrets of the request, and
// the body of the request masked.
func (x *exchange) clean(unmasked bool, last *recent[[]byte]) func(spool.Frame) spool.Frame {
	lane, encoded := x.lane(), x.Header.Get("Content-Encoding") != "" // the headers change when it is committed
	return func(f spool.Frame) spool.Frame {
		switch {
		case f.Kind == frameSent && !unmasked && !encoded:
			f.Data = maskBody(x.hideIn(f.Data), lane, last)
			x.masked = f.Data
		case f.Kind == frameCame:
			f.Data = x.hideIn(f.Data)
		}
		return f
	}
}

// hideIn returns bytes without the secrets of the request.
func (x *exchange) hideIn(data []byte) []byte {
	for _, secret := range x.secrets {
		if bytes.Contains(data, []byte(secret)) {
			return []byte(x.hide(string(data)))
		}
	}
	return data
}

// read fills an exchange from its frames. It reports whether there is a request.
func (x *exchange) read(frames []spool.Frame) bool {
	x.sent, x.came = nil, nil
	for _, f := range frames {
		var err error
		switch f.Kind {
		case frameHead:
			err = json.Unmarshal(f.Data, &x.requestHead)
		case frameSent:
			x.sent, x.whole = f.Data, true
		case frameAnswer:
			var h responseHead
			err = json.Unmarshal(f.Data, &h)
			x.status, x.response, x.first = h.Status, h.Header, h.First
		case frameCame:
			x.came = append(x.came, f.Data...)
		case frameEnd:
			var e end
			err = json.Unmarshal(f.Data, &e)
			if x.duration, x.err = e.Duration, nil; e.Err != "" {
				x.err = errors.New(e.Err)
			}
		}
		if err != nil {
			return false
		}
	}
	return x.whole && x.API != ""
}

// nothing is the frames of an exchange that is not kept.
func nothing() []spool.Frame { return nil }

// keptFrames returns the frames of a committed exchange that stay in the spool: masked, and
// without a response in which a secret was found, since a stream may hold it in pieces.
func (x *exchange) keptFrames(unmasked, secret bool) func() []spool.Frame {
	frames := []spool.Frame{{Kind: frameHead, Data: encode(x.requestHead)}, {Kind: frameSent, Data: x.sent}, {Kind: frameAnswer, Data: x.answerHead()}}
	if !secret || unmasked {
		frames = append(frames, spool.Frame{Kind: frameCame, Data: x.came})
	}
	frames = append(frames, spool.Frame{Kind: frameEnd, Data: x.endHead()})
	encoded := x.Header.Get("Content-Encoding") != "" || x.response.Get("Content-Encoding") != ""
	return func() []spool.Frame {
		switch {
		case unmasked:
			return frames
		case encoded: // nothing can be found in it
			return nil
		}
		for i, f := range frames {
			if f.Kind == frameSent && x.masked != nil {
				frames[i].Data = x.masked
				continue
			}
			frames[i].Data = []byte(secrets.Mask(x.hide(string(f.Data))))
		}
		return frames
	}
}
