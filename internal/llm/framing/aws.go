package framing

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// Amazon's binary event stream (the media type application/vnd.amazon.eventstream)
// is a row of messages:
//
//	length of all, length of the headers, CRC-32 of these two; headers; payload;
//	CRC-32 of all before it
//
// Numbers are big-endian, with 4 bytes in these places. The headers tell what the
// payload is, which is JSON here.
const (
	awsPrelude    = 12
	awsTrailer    = 4
	maxAWSMessage = maxBody // bytes of one message
)

// readAWS yields the payloads of the messages. The error of a stream that
// ends inside a message is io.ErrUnexpectedEOF.
func readAWS(r io.Reader, yield func(Frame, error) bool) {
	var message bytes.Buffer
	for {
		message.Reset()
		switch err := readAWSMessage(r, &message); {
		case err == io.EOF:
			return
		case err != nil:
			yield(Frame{}, err)
			return
		}
		f, err := awsFrame(message.Bytes())
		if err != nil {
			yield(Frame{}, err)
			return
		}
		if (len(f.Data) > 0 || f.Failed) && !yield(f, nil) {
			return
		}
	}
}

// readAWSMessage reads one message up to the checksum at its end, and checks both of its
// checksums. Memory grows with the bytes that came, not with the announced length.
func readAWSMessage(r io.Reader, message *bytes.Buffer) error {
	if _, err := io.CopyN(message, r, awsPrelude); err != nil {
		return eofInsideMessage(err, message)
	}
	head := message.Bytes()
	length, headers := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:])
	switch {
	case crc32.ChecksumIEEE(head[:8]) != binary.BigEndian.Uint32(head[8:]):
		return fmt.Errorf("%w: event stream: a message begins with a wrong checksum", llm.ErrProtocol)
	case length > maxAWSMessage:
		return fmt.Errorf("event stream: message %w", llm.ErrTooLong)
	case uint64(length) < uint64(headers)+awsPrelude+awsTrailer:
		return fmt.Errorf("%w: event stream: a message of %d bytes with %d of headers", llm.ErrProtocol, length, headers)
	}
	if _, err := io.CopyN(message, r, int64(length)-awsPrelude); err != nil {
		return eofInsideMessage(err, message)
	}
	body := message.Bytes()[:length-awsTrailer]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(message.Bytes()[len(body):]) {
		return fmt.Errorf("%w: event stream: a message with a wrong checksum", llm.ErrProtocol)
	}
	message.Truncate(len(body))
	return nil
}

// eofInsideMessage returns err, or io.ErrUnexpectedEOF for an io.EOF inside the message.
func eofInsideMessage(err error, message *bytes.Buffer) error {
	if err == io.EOF && message.Len() > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// awsFrame returns the frame of a message. An event of InvokeModel wraps the event of the
// model in base64.
func awsFrame(message []byte) (Frame, error) {
	headers := message[awsPrelude:]
	n := binary.BigEndian.Uint32(message[4:])
	payload := headers[n:]
	h, ok := awsHeaders(headers[:n])
	if !ok {
		return Frame{}, fmt.Errorf("%w: event stream: headers that cannot be read", llm.ErrProtocol)
	}
	switch h[":message-type"] {
	case "exception":
		return Frame{Event: h[":exception-type"], Data: payload, Failed: true}, nil
	case "error":
		return Frame{Event: h[":error-code"], Data: rawjson.NewObject("message", h[":error-message"]).Bytes(), Failed: true}, nil
	}
	if h[":event-type"] == "chunk" {
		if v, err := rawjson.Parse(payload); err == nil && v.Get("bytes").Kind() == rawjson.KindString {
			data, err := base64.StdEncoding.DecodeString(v.Get("bytes").Text())
			if err != nil {
				return Frame{}, fmt.Errorf("%w: event stream: %w", llm.ErrProtocol, err)
			}
			return Frame{Data: data}, nil
		}
	}
	return Frame{Event: h[":event-type"], Data: payload}, nil
}

// awsSizes is the size of a header value by its type; -1 when two bytes before the value
// give it.
var awsSizes = [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

// awsString is the type of a header that is a string.
const awsString = 7

// awsHeaders reads the headers that are strings, and reports whether all could be read.
func awsHeaders(b []byte) (h map[string]string, ok bool) {
	h = map[string]string{}
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < n+2 || int(b[n+1]) >= len(awsSizes) {
			return h, false
		}
		name, kind, rest := b[1:n+1], b[n+1], b[n+2:]
		size := awsSizes[kind]
		if size < 0 {
			if len(rest) < 2 {
				return h, false
			}
			size, rest = int(binary.BigEndian.Uint16(rest)), rest[2:]
		}
		if len(rest) < size {
			return h, false
		}
		if kind == awsString {
			h[string(name)] = string(rest[:size])
		}
		b = rest[size:]
	}
	return h, true
}
