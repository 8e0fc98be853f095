package compression

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
)

// inflate decompresses a frame as an engine does.
func inflate(frame []byte) ([]byte, error) {
	n, err := Size(frame)
	if err != nil {
		return nil, err
	}
	return Append(make([]byte, 0, n+Slack), frame)
}

func TestRoundTrip(t *testing.T) {
	for _, data := range []string{"", "x", strings.Repeat("words ", 50_000), strings.Repeat("x", MaxSize)} {
		for name, frame := range map[string][]byte{"best": CompressBest(nil, []byte(data)), "fast": CompressFast(nil, []byte(data))} {
			got, err := inflate(frame)
			if err != nil || string(got) != data || !IsFrame(frame) {
				t.Errorf("%s: %d bytes: %d, %v", name, len(data), len(got), err)
			}
			if len(data) == MaxSize {
				continue // together it is more
			}
			if got, err := Append([]byte("before "), frame); err != nil || string(got) != "before "+data {
				t.Errorf("%s: %d bytes behind others: %d, %v", name, len(data), len(got), err)
			}
		}
	}
}

// TestNoSizeIsTrusted: a small frame that claims a large content takes no memory, and one
// that holds more than it claims is refused.
func TestNoSizeIsTrusted(t *testing.T) {
	zeros := CompressBest(nil, make([]byte, 4<<20))
	huge := append(bytes.Clone(magic), 0xe0) // a size of 8 bytes, one segment
	huge = append(binary.LittleEndian.AppendUint64(huge, 1<<40), 1, 0, 0)
	for name, b := range map[string][]byte{
		"nothing": nil, "no frame": []byte("words"), "a huge size": huge, "over the limit": CompressBest(nil, make([]byte, MaxSize+1)),
		"truncated": zeros[:len(zeros)-1], "a frame and more": append(bytes.Clone(zeros), 'x'), "two frames": append(bytes.Clone(zeros), zeros...),
		"a frame to be skipped": {0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 'x'},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := inflate(b)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: %d bytes and no error", name, len(got))
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 2*MaxSize {
			t.Errorf("%s: %d bytes of memory", name, took)
		}
	}
}

func FuzzAppend(f *testing.F) {
	f.Add(CompressBest(nil, []byte(strings.Repeat("words ", 100))))
	f.Add(CompressBest(nil, []byte("x")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := inflate(b); len(got) > MaxSize || err == nil && len(b) < 5 {
			t.Fatalf("%d bytes of %d, %v", len(got), len(b), err)
		}
	})
}
