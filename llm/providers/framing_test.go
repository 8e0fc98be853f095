package providers

import (
	"bytes"
	"encoding/base64"
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

	"github.com/tract-vcs/tract/llm"
)

// awsMessage is a message of Amazon's event stream.
func awsMessage(payload string, headers ...string) []byte {
	var head []byte
	for i := 0; i < len(headers); i += 2 {
		head = append(append(head, byte(len(headers[i]))), headers[i]...)
		head = binary.BigEndian.AppendUint16(append(head, awsString), uint16(len(headers[i+1])))
		head = append(head, headers[i+1]...)
	}
	m := binary.BigEndian.AppendUint32(nil, uint32(awsPrelude+len(head)+len(payload)+awsTail))
	m = binary.BigEndian.AppendUint32(m, uint32(len(head)))
	m = binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
	m = append(append(m, head...), payload...)
	return binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
}

// awsEvent is a message with an event.
func awsEvent(kind, payload string) []byte {
	return awsMessage(payload, ":event-type", kind, ":content-type", "application/json", ":message-type", "event")
}

// awsChunk is a message with what a model said by itself.
func awsChunk(data string) []byte {
	return awsEvent("chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(data))+`","p":"abc"}`)
}

// framed is the frames of a body in words, and the error that ends them.
func framed(body io.Reader, f Framing) (list []string, failed error) {
	for f, err := range frames(&beginning{r: body}, f) {
		if err != nil {
			return list, err
		}
		text := f.event + " " + string(f.data)
		if f.whole {
			text += " whole"
		}
		if f.last {
			text += " last"
		}
		if f.failed {
			text += " failed"
		}
		list = append(list, text)
	}
	return list, nil
}

func TestFramingsAreFoundByLooking(t *testing.T) {
	aws := slices.Concat(awsEvent("one", `{"a":1}`), awsChunk(`{"b":2}`), awsMessage(`{"message":"slow down"}`, ":exception-type", "throttlingException", ":message-type", "exception"),
		awsMessage("", ":message-type", "error", ":error-code", "500", ":error-message", "oh"))
	for _, c := range []struct {
		name, body string
		f          Framing
		want       []string
	}{
		{"one text", ` {"a":[1,"}\"]"]} ` + "\n", FramingFound, []string{` {"a":[1,"}\"]"]} whole`}},
		{"one text after a byte order mark", "\xEF\xBB\xBF{}", FramingFound, []string{" {} whole"}},
		{"one text that is an event", `{"a":1}`, FramingStream, []string{` {"a":1}`}},
		{"lines", "{\"a\":1}\n\n{\"b\":2}\r\n", FramingFound, []string{` {"a":1}`, ` {"b":2}`}},
		{"lines without line ends", `{"a":1}{"b":"{"}`, FramingFound, []string{` {"a":1}`, ` {"b":"{"}`}},
		{"texts over several lines", "{\n\"a\":1\n}\n{\n\"b\":2}", FramingFound, []string{" {\n\"a\":1\n}", " {\n\"b\":2}"}},
		{"lines of anything", "1 true\n[2]\n\"x y\"\n", FramingLines, []string{" 1", " true", " [2]", ` "x y"`}},
		{"a last line that is cut", "{\"a\":1}\n{\"b", FramingFound, []string{` {"a":1}`, ` {"b`}},
		{"an array", "[{\"a\":[1,2]}\n,\r\n{\"b\":2}]", FramingFound, []string{` {"a":[1,2]}`, ` {"b":2}`, "  last"}},
		{"an array by force", `[{"a":1}]`, FramingJSON, []string{` [{"a":1}] whole`}},
		{"an array that is cut", `[{"a":1},{"b`, FramingFound, []string{` {"a":1}`, ` {"b`}},
		{"an empty array", `[ ]`, FramingStream, []string{"  last"}},
		{"server-sent events", "event: x\ndata: {}\n\ndata: [DONE]\n\n", FramingFound, []string{"x {}", " [DONE] last"}},
		{"Amazon's", string(aws), FramingFound, []string{`one {"a":1}`, ` {"b":2}`, `throttlingException {"message":"slow down"} failed`, `500 {"message":"oh"} failed`}},
		{"nothing", " \n", FramingFound, nil},
	} {
		for how, r := range map[string]io.Reader{"whole": strings.NewReader(c.body), "byte by byte": iotest.OneByteReader(strings.NewReader(c.body))} {
			if got, err := framed(r, c.f); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s, %s: %q, %v, want %q", c.name, how, got, err, c.want)
			}
		}
	}
}

func TestBrokenFramesAreErrors(t *testing.T) {
	good := awsEvent("one", `{"a":1}`)
	turned := func(at int) string {
		bad := slices.Clone(good)
		bad[at] ^= 1
		return string(good) + string(bad)
	}
	short := binary.BigEndian.AppendUint32(nil, 15)
	short = binary.BigEndian.AppendUint32(short, 0)
	short = binary.BigEndian.AppendUint32(short, crc32.ChecksumIEEE(short))
	long := binary.BigEndian.AppendUint32(nil, maxAWS+1)
	long = binary.BigEndian.AppendUint32(long, 0)
	long = binary.BigEndian.AppendUint32(long, crc32.ChecksumIEEE(long))
	for _, c := range []struct {
		name, body string
		f          Framing
		want       error
	}{
		{"a length", turned(3), FramingFound, llm.ErrProtocol},
		{"a checksum of a beginning", turned(9), FramingFound, llm.ErrProtocol},
		{"a header", turned(14), FramingFound, llm.ErrProtocol},
		{"a payload", turned(len(good) - 7), FramingFound, llm.ErrProtocol},
		{"a checksum", turned(len(good) - 1), FramingFound, llm.ErrProtocol},
		{"no room for itself", string(short), FramingFound, llm.ErrProtocol},
		{"a message that is too long", string(long), FramingAWS, llm.ErrTooLong},
		{"headers that are none", string(badHeaders()), FramingFound, llm.ErrProtocol},
		{"a chunk that is no base64", string(awsEvent("chunk", `{"bytes":"!"}`)), FramingFound, llm.ErrProtocol},
		{"half a message", string(good) + string(good[:20]), FramingFound, io.ErrUnexpectedEOF},
		{"half a beginning", string(good) + string(good[:5]), FramingFound, io.ErrUnexpectedEOF},
		{"an array of numbers", `[1,2]`, FramingFound, llm.ErrProtocol},
		{"an array without a comma", `[{}{}]`, FramingFound, llm.ErrProtocol},
		{"no array", `{"a":1}`, FramingArray, llm.ErrProtocol},
		{"text that is none", `} {`, FramingFound, llm.ErrProtocol},
	} {
		got, err := framed(strings.NewReader(c.body), c.f)
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
	m := binary.BigEndian.AppendUint32(nil, awsPrelude+3+awsTail)
	m = binary.BigEndian.AppendUint32(m, 3)
	m = binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
	m = append(m, 9, 'a', 'b')
	return binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
}

func TestHeadersOfAllTypesAreReadOver(t *testing.T) {
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
	if h, ok := headersOfAWS(b); !ok || h[":event-type"] != "v" {
		t.Errorf("%+v, %t", h, ok)
	}
}

// TestEventsComeAsTheyAreWhole: whoever waits for the end sees nothing live. The
// first of a body that begins like one text waits for what follows it.
func TestEventsComeAsTheyAreWhole(t *testing.T) {
	first, second := `{"n":1}`, `{"n":2}`
	for name, pieces := range map[string][]string{
		"array": {"[" + first, "," + second, "]"}, "lines": {first + "\n" + `{`, second[1:], "\n"}, "events": {event(first), event(second), ""},
		"Amazon's": {string(awsChunk(first)), string(awsChunk(second)), ""},
	} {
		r, w := io.Pipe()
		next, stop := iter.Pull2(frames(&beginning{r: r}, FramingFound))
		go func() { _, _ = io.WriteString(w, pieces[0]) }()
		if f, err, ok := next(); string(f.data) != first || err != nil || !ok {
			t.Errorf("%s: first %q, %v", name, f.data, err)
		}
		go func() { _, _ = io.WriteString(w, pieces[1]) }()
		if f, err, ok := next(); string(f.data) != second || err != nil || !ok {
			t.Errorf("%s: second %q, %v", name, f.data, err)
		}
		go func() { _, _ = io.WriteString(w, pieces[2]); w.Close() }()
		for f, err, ok := next(); ok; f, err, ok = next() {
			if err != nil || !f.last {
				t.Errorf("%s: then %+v, %v", name, f, err)
			}
		}
		stop()
	}
}

// endless is a body without an end.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

func TestABodyWithoutAnEndIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads 64 MiB, five times")
	}
	for name, begin := range map[string]string{"lines": `{"a":1}`, "a text": `{"a":"`, "an array": `[{"a":"`, "an element": `[{"a":1},{"a":"`, "Amazon's": string(awsChunk("{}"))} {
		fill := "x"
		if name == "lines" || name == "Amazon's" {
			fill = begin
		}
		n, failed := 0, error(nil)
		for f, err := range frames(&beginning{r: io.MultiReader(strings.NewReader(begin), &endless{text: strings.Repeat(fill, 99)})}, FramingFound) {
			n, failed = n+len(f.data), err
		}
		if !errors.Is(failed, llm.ErrTooLong) || n > maxBody {
			t.Errorf("%s: %d bytes, %v", name, n, failed)
		}
	}
}

// TestADeepTextIsRefused: 256 brackets in each other, and no more.
func TestADeepTextIsRefused(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "}"
	tt, _, err := find("ollama", "ollama")
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{"one text": deep, "lines": deep + deep, "array": "[" + deep + "]", "events": event(deep), "Amazon's": string(awsEvent("x", deep))} {
		for _, err = range tt.decode(strings.NewReader(body), FramingFound) {
		}
		if !errors.Is(err, llm.ErrProtocol) {
			t.Errorf("%s: %v, want %v", name, err, llm.ErrProtocol)
		}
	}
}

// TestABodyThatStopsGivingIsLeft: readers that give nothing are broken.
func TestABodyThatStopsGivingIsLeft(t *testing.T) {
	silent := readerFunc(func([]byte) (int, error) { return 0, nil })
	if got, err := framed(io.MultiReader(strings.NewReader(`{"a":`), silent), FramingFound); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("%q, %v", got, err)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// FuzzFrames: however a body is cut, its frames are the same, and they are no
// more than the body.
func FuzzFrames(f *testing.F) {
	for i, body := range []string{
		`{"a":1}` + "\n" + `{"b":"\""}`, `[{"a":1},{}]`, event(`{}`) + event("[DONE]"), string(awsEvent("x", `{}`)) + string(awsChunk(`{"a":1}`)), "\x00\x00", `}{,"`, `{"a":"\`,
	} {
		f.Add([]byte(body), byte(i))
	}
	framings := []Framing{FramingFound, FramingStream, FramingJSON, FramingSSE, FramingArray, FramingLines, FramingAWS}
	f.Fuzz(func(t *testing.T, body []byte, n byte) {
		framing := framings[int(n)%len(framings)]
		list, err := framed(bytes.NewReader(body), framing)
		again, err2 := framed(iotest.OneByteReader(bytes.NewReader(body)), framing)
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
