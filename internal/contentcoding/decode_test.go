package contentcoding

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"testing"

	"github.com/andybalholm/brotli"

	"github.com/tract-vcs/tract/internal/compression"
)

// TestDecode reads a body in each content encoding, one over the other, and cut off.
func TestDecode(t *testing.T) {
	const body = "data: {\"text\":\"Hello\"}\n\n"
	through := func(w io.WriteCloser, out *bytes.Buffer) []byte {
		io.WriteString(w, body)
		w.Close()
		return out.Bytes()
	}
	var packed [3]bytes.Buffer
	bodies := map[string][]byte{
		"":        []byte(body),
		"gzip":    through(gzip.NewWriter(&packed[0]), &packed[0]),
		"deflate": through(zlib.NewWriter(&packed[1]), &packed[1]),
		"br":      through(brotli.NewWriter(&packed[2]), &packed[2]),
		"zstd":    compression.CompressFast(nil, []byte(body)),
	}
	for encoding, packed := range bodies {
		if have, err := Decode(packed, encoding, 1<<20); err != nil || string(have) != body {
			t.Errorf("%s: %q, %v", encoding, have, err)
		}
	}
	if have, err := Decode(compression.CompressFast(nil, bodies["gzip"]), "gzip, zstd", 1<<20); err != nil || string(have) != body {
		t.Errorf("gzip, zstd: %q, %v", have, err)
	}
	if have, err := Decode(bodies["gzip"][:len(bodies["gzip"])-6], "gzip", 1<<20); err == nil || string(have) != body {
		t.Errorf("cut off: %q, %v", have, err)
	}
	if _, err := Decode([]byte(body), "lzma", 1<<20); err == nil {
		t.Error("an unknown encoding was read")
	}
	if _, err := Decode(bodies["gzip"], "gzip", 5); !errors.Is(err, ErrTooLong) {
		t.Errorf("a body that is too long: %v", err)
	}
}
