package recorder

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"

	"github.com/tract-vcs/tract/internal/compression"
)

// decompress returns a body without its content encodings. With an error it returns what
// could be read: a body may have been cut off.
func decompress(body []byte, encodings string) ([]byte, error) {
	list := strings.Split(encodings, ",")
	for i := len(list) - 1; i >= 0; i-- { // the last one was applied last
		name := strings.ToLower(strings.TrimSpace(list[i]))
		if name == "" || name == "identity" {
			continue
		}
		r, err := newDecoder(bytes.NewReader(body), name)
		if err != nil {
			return nil, err
		}
		plain, err := io.ReadAll(io.LimitReader(r, maxBody+1))
		if len(plain) > maxBody {
			return nil, errTooLong
		}
		if body = plain; err != nil {
			return body, fmt.Errorf("decompress body: %w", err)
		}
	}
	return body, nil
}

// newDecoder returns a reader of a body without one encoding, by its name in RFC 9110 and its
// successors.
func newDecoder(r io.Reader, encoding string) (io.Reader, error) {
	switch encoding {
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "deflate":
		return zlib.NewReader(r)
	case "br":
		return brotli.NewReader(r), nil
	case "zstd":
		return compression.NewReader(r)
	}
	return nil, fmt.Errorf("content encoding %q cannot be read", encoding)
}
