// Package contentcoding decodes bodies of HTTP messages by their Content-Encoding: gzip, deflate,
// br and zstd.
package contentcoding

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"

	"github.com/tract-vcs/tract/internal/compression"
)

// ErrTooLong says that a body has more bytes than the limit.
var ErrTooLong = errors.New("the decoded body is too long")

// Decode returns a body without the codings that a Content-Encoding header lists. With an error
// it returns what could be read: a body may have been cut off. No more than limit bytes are
// decoded.
func Decode(body []byte, header string, limit int64) ([]byte, error) {
	list := strings.Split(header, ",")
	for i := len(list) - 1; i >= 0; i-- { // the last one was applied last
		name := strings.ToLower(strings.TrimSpace(list[i]))
		if name == "" || name == "identity" {
			continue
		}
		r, err := newDecoder(bytes.NewReader(body), name)
		if err != nil {
			return nil, err
		}
		plain, err := io.ReadAll(io.LimitReader(r, limit+1))
		if int64(len(plain)) > limit {
			return nil, ErrTooLong
		}
		if body = plain; err != nil {
			return body, fmt.Errorf("decode body: %w", err)
		}
	}
	return body, nil
}

// newDecoder returns a reader of a body without one coding, by its name in RFC 9110 and its
// successors.
func newDecoder(r io.Reader, coding string) (io.Reader, error) {
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "deflate":
		return zlib.NewReader(r)
	case "br":
		return brotli.NewReader(r), nil
	case "zstd":
		return compression.NewReader(r)
	}
	return nil, fmt.Errorf("content encoding %q cannot be read", coding)
}
