package framing

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tract-vcs/tract/internal/llm/framing/framingtest"
	"github.com/tract-vcs/tract/llm"
)

// readFrames is the frames of a body in words, and the error that ends them.
func readFrames(body io.Reader, f llm.Framing) (list []string, failed error) {
	for f, err := range Read(body, f) {
		if err != nil {
			return list, err
		}
		text := f.Event + " " + string(f.Data)
		if f.Whole {
			text += " whole"
		}
		if f.Last {
			text += " last"
		}
		if f.Failed {
			text += " failed"
		}
		list = append(list, text)
	}
	return list, nil
}

func TestReadDetectsTheFraming(t *testing.T) {
	aws := slices.Concat(framingtest.AWSEvent("one", `{"a":1}`), framingtest.AWSChunk(`{"b":2}`), framingtest.AWSMessage(`{"message":"slow down"}`, ":exception-type", "throttlingException", ":message-type", "exception"),
		framingtest.AWSMessage("", ":message-type", "error", ":error-code", "500", ":error-message", "oh"))
	for _, c := range []struct {
		name, body string
		f          llm.Framing
		want       []string
	}{
		{"one text", ` {"a":[1,"}\"]"]} ` + "\n", llm.FramingAuto, []string{` {"a":[1,"}\"]"]} whole`}},
		{"one text after a byte order mark", "\xEF\xBB\xBF{}", llm.FramingAuto, []string{" {} whole"}},
		{"one text that is an event", `{"a":1}`, llm.FramingStream, []string{` {"a":1}`}},
		{"lines", "{\"a\":1}\n\n{\"b\":2}\r\n", llm.FramingAuto, []string{` {"a":1}`, ` {"b":2}`}},
		{"lines without line ends", `{"a":1}{"b":"{"}`, llm.FramingAuto, []string{` {"a":1}`, ` {"b":"{"}`}},
		{"texts over several lines", "{\n\"a\":1\n}\n{\n\"b\":2}", llm.FramingAuto, []string{" {\n\"a\":1\n}", " {\n\"b\":2}"}},
		{"lines of anything", "1 true\n[2]\n\"x y\"\n", llm.FramingLines, []string{" 1", " true", " [2]", ` "x y"`}},
		{"a last line that is cut", "{\"a\":1}\n{\"b", llm.FramingAuto, []string{` {"a":1}`, ` {"b`}},
		{"an array", "[{\"a\":[1,2]}\n,\r\n{\"b\":2}]", llm.FramingAuto, []string{` {"a":[1,2]}`, ` {"b":2}`, "  last"}},
		{"an array by force", `[{"a":1}]`, llm.FramingJSON, []string{` [{"a":1}] whole`}},
		{"an array that is cut", `[{"a":1},{"b`, llm.FramingAuto, []string{` {"a":1}`, ` {"b`}},
		{"an empty array", `[ ]`, llm.FramingStream, []string{"  last"}},
		{"server-sent events", "event: x\ndata: {}\n\ndata: [DONE]\n\n", llm.FramingAuto, []string{"x {}", " [DONE] last"}},
		{"Amazon's", string(aws), llm.FramingAuto, []string{`one {"a":1}`, ` {"b":2}`, `throttlingException {"message":"slow down"} failed`, `500 {"message":"oh"} failed`}},
		{"nothing", " \n", llm.FramingAuto, nil},
	} {
		for how, r := range map[string]io.Reader{"whole": strings.NewReader(c.body), "byte by byte": iotest.OneByteReader(strings.NewReader(c.body))} {
			if got, err := readFrames(r, c.f); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s, %s: %q, %v, want %q", c.name, how, got, err, c.want)
			}
		}
	}
}

func TestReadReportsBrokenFrames(t *testing.T) {
	good := framingtest.AWSEvent("one", `{"a":1}`)
	turned := func(at int) string {
		bad := slices.Clone(good)
		bad[at] ^= 1
		return string(good) + string(bad)
	}
	short := binary.BigEndian.AppendUint32(nil, 15)
	short = binary.BigEndian.AppendUint32(short, 0)
	short = binary.BigEndian.AppendUint32(short, crc32.ChecksumIEEE(short))
	long := binary.BigEndian.AppendUint32(nil, maxAWSMessage+1)
	long = binary.BigEndian.AppendUint32(long, 0)
	long = binary.BigEndian.AppendUint32(long, crc32.ChecksumIEEE(long))
	for _, c := range []struct {
		name, body string
		f          llm.Framing
		want       error
	}{
		{"a length", turned(3), llm.FramingAuto, llm.ErrProtocol},
		{"a checksum of a beginning", turned(9), llm.FramingAuto, llm.ErrProtocol},
		{"a header", turned(14), llm.FramingAuto, llm.ErrProtocol},
		{"a payload", turned(len(good) - 7), llm.FramingAuto, llm.ErrProtocol},
		{"a checksum", turned(len(good) - 1), llm.FramingAuto, llm.ErrProtocol},
		{"no room for itself", string(short), llm.FramingAuto, llm.ErrProtocol},
		{"a message that is too long", string(long), llm.FramingAWS, llm.ErrTooLong},
		{"headers that are none", string(badHeaders()), llm.FramingAuto, llm.ErrProtocol},
		{"a chunk that is no base64", string(framingtest.AWSEvent("chunk", `{"bytes":"!"}`)), llm.FramingAuto, llm.ErrProtocol},
		{"half a message", string(good) + string(good[:20]), llm.FramingAuto, io.ErrUnexpectedEOF},
		{"half a beginning", string(good) + string(good[:5]), llm.FramingAuto, io.ErrUnexpectedEOF},
		{"an array of numbers", `[1,2]`, llm.FramingAuto, llm.ErrProtocol},
		{"an array without a comma", `[{}{}]`, llm.FramingAuto, llm.ErrProtocol},
		{"no array", `{"a":1}`, llm.FramingArray, llm.ErrProtocol},
		{"text that is none", `} {`, llm.FramingAuto, llm.ErrProtocol},
	} {
		got, err := readFrames(strings.NewReader(c.body), c.f)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %q, %v, want %v", c.name, got, err, c.want)
		}
		if strings.HasPrefix(c.body, string(good)) && !slices.Equal(got, []string{`one {"a":1}`}) {
			t.Errorf("%s: what came before is %q", c.name, got)
		}
	}
}

// badHeaders is a message whose headers end inside one.
func badHeaders() []byte {
	m := binary.BigEndian.AppendUint32(nil, awsPrelude+3+awsTrailer)
	m = binary.BigEndian.AppendUint32(m, 3)
	m = binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
	m = append(m, 9, 'a', 'b')
	return binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
}

func TestAWSHeadersOfAllTypes(t *testing.T) {
	var b []byte
	for kind, size := range awsSizes {
		b = append(b, 1, 'h', byte(kind))
		if size < 0 {
			b, size = append(b, 0, 2), 2
		}
		b = append(b, bytes.Repeat([]byte{'v'}, size)...)
	}
	name := ":event-type"
	b = append(append(append(b, byte(len(name))), name...), awsString, 0, 1, 'v')
	if h, ok := awsHeaders(b); !ok || h[":event-type"] != "v" {
		t.Errorf("%+v, %t", h, ok)
	}
}

// TestReadYieldsEachFrameAtOnce: whoever waits for the end sees nothing live. The
// first of a body that begins like one text waits for what follows it.
func TestReadYieldsEachFrameAtOnce(t *testing.T) {
	first, second := `{"n":1}`, `{"n":2}`
	for name, pieces := range map[string][]string{
		"array": {"[" + first, "," + second, "]"}, "lines": {first + "\n" + `{`, second[1:], "\n"}, "events": {sse(first), sse(second), ""},
		"Amazon's": {string(framingtest.AWSChunk(first)), string(framingtest.AWSChunk(second)), ""},
	} {
		r, w := io.Pipe()
		next, stop := iter.Pull2(Read(r, llm.FramingAuto))
		go func() { _, _ = io.WriteString(w, pieces[0]) }()
		if f, err, ok := next(); string(f.Data) != first || err != nil || !ok {
			t.Errorf("%s: first %q, %v", name, f.Data, err)
		}
		go func() { _, _ = io.WriteString(w, pieces[1]) }()
		if f, err, ok := next(); string(f.Data) != second || err != nil || !ok {
			t.Errorf("%s: second %q, %v", name, f.Data, err)
		}
		go func() { _, _ = io.WriteString(w, pieces[2]); w.Close() }()
		for f, err, ok := next(); ok; f, err, ok = next() {
			if err != nil || !f.Last {
				t.Errorf("%s: then %+v, %v", name, f, err)
			}
		}
		stop()
	}
}

// sse is a server-sent event.
func sse(data string) string { return "data: " + data + "\n\n" }

// endlessReader is a body without an end.
type endlessReader struct {
	text string
	at   int
}

func (e *endlessReader) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

func TestReadRefusesAnEndlessBody(t *testing.T) {
	limit := 1 << 20
	if torture() {
		limit = maxBody
	}
	for name, begin := range map[string]string{"lines": `{"a":1}`, "a text": `{"a":"`, "an array": `[{"a":"`, "an element": `[{"a":1},{"a":"`, "Amazon's": string(framingtest.AWSChunk("{}"))} {
		fill := "x"
		if name == "lines" || name == "Amazon's" {
			fill = begin
		}
		n, failed := 0, error(nil)
		for f, err := range read(io.MultiReader(strings.NewReader(begin), &endlessReader{text: strings.Repeat(fill, 99)}), llm.FramingAuto, limit) {
			n, failed = n+len(f.Data), err
		}
		if !errors.Is(failed, llm.ErrTooLong) || n > limit {
			t.Errorf("%s: %d bytes, %v", name, n, failed)
		}
	}
}

// TestReadFailsWithoutProgress: readers that give nothing are broken.
func TestReadFailsWithoutProgress(t *testing.T) {
	silent := readerFunc(func([]byte) (int, error) { return 0, nil })
	if got, err := readFrames(io.MultiReader(strings.NewReader(`{"a":`), silent), llm.FramingAuto); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("%q, %v", got, err)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// FuzzFrames: however a body is cut, its frames are the same, and they are no
// more than the body.
func FuzzFrames(f *testing.F) {
	for i, body := range []string{
		`{"a":1}` + "\n" + `{"b":"\""}`, `[{"a":1},{}]`, sse(`{}`) + sse("[DONE]"), string(framingtest.AWSEvent("x", `{}`)) + string(framingtest.AWSChunk(`{"a":1}`)), "\x00\x00", `}{,"`, `{"a":"\`,
	} {
		f.Add([]byte(body), byte(i))
	}
	framings := []llm.Framing{llm.FramingAuto, llm.FramingStream, llm.FramingJSON, llm.FramingSSE, llm.FramingArray, llm.FramingLines, llm.FramingAWS}
	f.Fuzz(func(t *testing.T, body []byte, n byte) {
		framing := framings[int(n)%len(framings)]
		list, err := readFrames(bytes.NewReader(body), framing)
		again, err2 := readFrames(iotest.OneByteReader(bytes.NewReader(body)), framing)
		if !slices.Equal(list, again) || fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Fatalf("%q: whole %q, %v; byte by byte %q, %v", framing, list, err, again, err2)
		}
		total := 0
		for _, text := range list {
			total += len(text)
		}
		if total > 20*len(body)+20 {
			t.Fatalf("%d bytes of %d", total, len(body))
		}
	})
}
