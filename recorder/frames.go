package recorder

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/tract-vcs/tract/internal/contentcoding"
	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/internal/spool"
)

// The kinds of frames of an exchange in the spool, in their order. A response has any number of
// frameResponseBody frames. Frames are missing at the end if the process ended before the
// response did.
const (
	frameRequestHead  = 'q' // requestHead
	frameRequestBody  = 'Q' // the body of the request
	frameResponseHead = 'a' // responseHead
	frameResponseBody = 'A' // a piece of the body of the response
	frameResponseEnd  = 'e' // responseEnd
)

// requestHead is the part of a request, apart from its body, that the spool keeps.
type requestHead struct {
	On                   string // the branch that On names; may be empty
	API, Provider, Model string
	Base, Path           string
	Header               http.Header // the headers that name the conversation
	Started              time.Time
}

// responseHead is the part of a response, apart from its body, that the spool keeps.
type responseHead struct {
	Status   int           // 0: there was no response
	Response http.Header   `json:"Header"` // see responseHeadersToKeep
	First    time.Duration // until the headers came
}

type responseEnd struct {
	Duration time.Duration
	Err      string // empty: the response is whole
}

func encodeJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types are those above
	}
	return data
}

func (x *exchange) encodeResponseEnd() []byte {
	e := responseEnd{Duration: x.duration}
	if x.err != nil {
		e.Err = x.redact(x.err.Error())
	}
	return encodeJSON(e)
}

// writeFrame adds a frame to the file of the exchange.
func (x *exchange) writeFrame(kind byte, data []byte) {
	x.file.Write(spool.Frame{Kind: kind, Data: data})
}

// maskFrame changes a frame before the spool writes it: it redacts the secrets of the exchange, masks
// secrets in the request, and decompresses the request body, because no secret can be found in it otherwise.
func (x *exchange) maskFrame(f spool.Frame) spool.Frame {
	switch f.Kind {
	case frameRequestHead:
		f.Data = x.maskText(f.Data)
	case frameRequestBody:
		body, err := contentcoding.Decode(f.Data, x.encoding, maxBody)
		if err != nil {
			body = nil // the commit will fail for the same reason
		}
		f.Data = x.maskRequest(body)
	case frameResponseBody:
		f.Data = x.redactBytes(f.Data)
	}
	return f
}

// maskText masks the secrets in bytes and redacts those of the exchange, unless the Repo masks none.
func (x *exchange) maskText(data []byte) []byte {
	if x.c.o.Unmasked {
		return data
	}
	return []byte(secrets.Mask(string(x.redactBytes(data))))
}

// readFrames fills an exchange from its frames. It reports whether the frames have a whole
// request.
func (x *exchange) readFrames(frames []spool.Frame) (hasRequest bool) {
	x.sent, x.received = nil, nil
	for _, f := range frames {
		var err error
		switch f.Kind {
		case frameRequestHead:
			err = json.Unmarshal(f.Data, &x.requestHead)
		case frameRequestBody:
			x.sent, x.whole, x.encoding = f.Data, true, ""
		case frameResponseHead:
			err = json.Unmarshal(f.Data, &x.responseHead)
		case frameResponseBody:
			x.received = append(x.received, f.Data...)
		case frameResponseEnd:
			var e responseEnd
			err = json.Unmarshal(f.Data, &e)
			if x.duration, x.err = e.Duration, nil; e.Err != "" {
				x.err = errors.New(e.Err)
			}
		}
		if err != nil {
			return false
		}
	}
	if x.recovered && x.Status >= 400 && x.Response.Get("Content-Encoding") != "" {
		x.received = nil // it may repeat the key, which cannot be found in it now
	}
	return x.whole && x.API != ""
}

// finishFile finishes the file of an exchange: the spool keeps the request, and the response with
// x.keptResponse as its body. Secrets in both are masked. An exchange that repeats purged content is not
// kept, nor is one whose response is compressed, because secrets cannot be found in it.
func (x *exchange) finishFile(label string) {
	kept := 2 // the head and the body of the request
	if x.recovered {
		kept = 0
	}
	x.file.Finish(label, kept, func() []spool.Frame {
		if x.purged || x.Response.Get("Content-Encoding") != "" && !x.c.o.Unmasked {
			return nil
		}
		frames := []spool.Frame{
			{Kind: frameRequestHead, Data: encodeJSON(x.requestHead)},
			{Kind: frameRequestBody, Data: x.sent},
			{Kind: frameResponseHead, Data: encodeJSON(x.responseHead)},
			{Kind: frameResponseBody, Data: x.keptResponse},
			{Kind: frameResponseEnd, Data: x.encodeResponseEnd()},
		}[kept:]
		for i, f := range frames {
			frames[i].Data = x.maskText(f.Data)
		}
		return frames
	})
}
