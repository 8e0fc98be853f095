package framing

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tract-vcs/tract/llm"
)

// event is a Frame that owns its data.
type event struct{ Event, ID, Data string }

// readEvents reads r to its end.
func readEvents(r io.Reader) (events []event, err error) {
	for f, e := range ServerSentEvents(r) {
		if e != nil {
			return events, e
		}
		events = append(events, event{f.Event, f.ID, string(f.Data)})
	}
	return events, nil
}

// plainEvents is the standard's algorithm over the whole text at once.
func plainEvents(text string) (events []event) {
	text = strings.TrimPrefix(text, "\xEF\xBB\xBF")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var e event
	var data []string
	flush := func() {
		if data != nil {
			e.Data = strings.Join(data, "\n")
			events = append(events, e)
		}
		e, data = event{}, nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			flush()
		case name == "event":
			e.Event = value
		case name == "id":
			e.ID = value
		case name == "data":
			data = append(data, value)
		}
	}
	flush()
	return events
}

func TestServerSent(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []event
	}{
		{"nothing", "", nil},
		{"one event", "data: a\n\n", []event{{Data: "a"}}},
		{"CRLF", "event: e\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []event{{Event: "e", Data: "a"}, {Data: "b"}}},
		{"CR", "data: a\r\rdata: b\r\r", []event{{Data: "a"}, {Data: "b"}}},
		{"mixed line ends", "data: a\r\n\ndata: b\n\r\ndata: c\r\r\n", []event{{Data: "a"}, {Data: "b"}, {Data: "c"}}},
		{"byte order mark", "\xEF\xBB\xBFdata: a\n\n", []event{{Data: "a"}}},
		{"byte order mark later", "data: a\n\n\xEF\xBB\xBFdata: b\n\n", []event{{Data: "a"}}},
		{"comments", ": ping\n\n:\ndata: a\n: OPENROUTER PROCESSING\n\n: x\n\n", []event{{Data: "a"}}},
		{"data lines are joined", "data: a\ndata:b\ndata:  c\ndata\ndata:\n\n", []event{{Data: "a\nb\n c\n\n"}}},
		{"empty first data line", "data\r\ndata:\ndata: x\n\n", []event{{Data: "\n\nx"}}},
		{"empty data", "data\n\ndata:\n\n", []event{{}, {}}},
		{"event after data", "data: a\nevent: e\nid: 7\n\n", []event{{Event: "e", ID: "7", Data: "a"}}},
		{"nothing is carried over", "event: e\nid: 7\ndata: a\n\ndata: b\n\n", []event{{Event: "e", ID: "7", Data: "a"}, {Data: "b"}}},
		{"frame without data", "event: e\nid: 1\n\ndata: a\n\n", []event{{Data: "a"}}},
		{"other fields", "retry: 3\nfoo\nDATA: x\n data: y\ndata: a\n{\"error\":1}\n\n", []event{{Data: "a"}}},
		{"colons in the value", "data: a: b\n\n", []event{{Data: "a: b"}}},
		{"no blank line at the end", "data: a\n\ndata: b\n", []event{{Data: "a"}, {Data: "b"}}},
		{"no line end at the end", "event: e\ndata: {\"x", []event{{Event: "e", Data: "{\"x"}}},
		{"cut in the field name", "data: a\ndat", []event{{Data: "a"}}},
		{"only an event at the end", "data: a\n\nevent: e", []event{{Data: "a"}}},
		{"many blank lines", "\n\n\ndata: a\n\n\n\n", []event{{Data: "a"}}},
		{"any bytes", "data: \x00\xff\n\n", []event{{Data: "\x00\xff"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"whole": strings.NewReader(c.in), "bytewise": iotest.OneByteReader(strings.NewReader(c.in)),
				"error with the data": iotest.DataErrReader(strings.NewReader(c.in)),
			} {
				if got, err := readEvents(r); err != nil || !slices.Equal(got, c.want) {
					t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
				}
			}
			if got := plainEvents(c.in); !slices.Equal(got, c.want) {
				t.Errorf("the standard's algorithm gives %q, want %q", got, c.want)
			}
		})
	}
	for n := range 2 * lineSlack { // line ends lie on each side of where the buffer ends
		for _, end := range []string{"\n", "\r\n", "\r"} {
			in := "data: " + strings.Repeat("x", 4<<10-lineSlack+n) + end + "data: y" + end + end + "data: z" + end + end
			if got, err := readEvents(strings.NewReader(in)); err != nil || !slices.Equal(got, plainEvents(in)) {
				t.Fatalf("%q after %d bytes: %d events, %v", end, len(in), len(got), err)
			}
		}
	}
}

// recordedStreams has the text of every stream of the shared corpus, by file.
func recordedStreams(t *testing.T) map[string]string {
	t.Helper()
	streams := make(map[string]string)
	dir := os.Getenv("TRACT_SHARED")
	if dir == "" {
		t.Skip("TRACT_SHARED is not set")
	}
	manifest, err := os.ReadFile(filepath.Join(dir, "wire", "manifest.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(manifest)) {
		var row struct{ File, Container string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if row.Container == "sse" {
			body, err := os.ReadFile(filepath.Join(dir, "wire", row.File))
			if err != nil {
				t.Fatal(err)
			}
			streams[row.File] = string(body)
		}
	}
	if len(streams) == 0 {
		t.Fatal("no streams in the manifest")
	}
	return streams
}

func TestServerSentReadsRecordedStreams(t *testing.T) {
	for file, text := range recordedStreams(t) {
		want := plainEvents(text)
		if len(want) == 0 {
			t.Errorf("%s: no events", file)
		}
		check := func(how string, r io.Reader) {
			t.Helper()
			if got, err := readEvents(r); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, %s: %d events, %v; want %d", file, how, len(got), err, len(want))
			}
		}
		lf := strings.ReplaceAll(text, "\r\n", "\n")
		for name, end := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
			swapped := strings.ReplaceAll(lf, "\n", end)
			check(name, strings.NewReader(swapped))
			check(name+" bytewise", iotest.OneByteReader(strings.NewReader(swapped)))
			for i := 0; i < len(swapped) && len(swapped) <= 8<<10; i += stride() {
				if name != "LF" && !strings.ContainsAny(swapped[max(0, i-2):min(i+2, len(swapped))], "\r\n") {
					continue // as with LF
				}
				check(fmt.Sprint(name, " in two at ", i), io.MultiReader(strings.NewReader(swapped[:i]), strings.NewReader(swapped[i:])))
			}
		}
	}
}

// stride is how far apart cuts are: one byte, or enough to be quick.
func stride() int {
	switch {
	case torture():
		return 1
	case testing.Short():
		return 97
	}
	return 31
}

// torture reports whether the long forms of the tests run (make torture).
func torture() bool { return os.Getenv("TRACT_TORTURE") != "" }

func TestServerSentLosesNoWholeEventWhenCut(t *testing.T) {
	broken := errors.New("connection reset")
	streams := map[string]string{"made here": "\xEF\xBB\xBFevent: e\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n: ping\n\ndata: b\n\nid: 7\rdata\r\rdata: [DONE]\n\n"}
	if os.Getenv("TRACT_SHARED") != "" {
		maps.Copy(streams, recordedStreams(t))
	}
	for file, text := range streams {
		if len(text) > 8<<10 {
			continue
		}
		for i := 0; i < len(text); i += stride() {
			want := plainEvents(text[:i])
			if got, err := readEvents(strings.NewReader(text[:i])); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%s cut at %d: %d events, %v; want %d", file, i, len(got), err, len(want))
			}
			got, err := readEvents(io.MultiReader(strings.NewReader(text[:i]), iotest.ErrReader(broken)))
			if !errors.Is(err, broken) || !slices.Equal(got, want) {
				t.Fatalf("%s broken at %d: %d events, %v; want %d", file, i, len(got), err, len(want))
			}
		}
	}
}

func TestServerSentDoesNotWaitForMore(t *testing.T) {
	for _, blank := range []string{"\n\n", "\r\r", "\r\n\r", "\n\r"} {
		r, w := io.Pipe()
		sent := make(chan struct{})
		go func() {
			for i := range 3 {
				fmt.Fprintf(w, "data: %d%s", i, blank)
				<-sent
			}
			w.Close()
		}()
		n := 0
		for f, err := range ServerSentEvents(r) {
			if err != nil || string(f.Data) != fmt.Sprint(n) {
				t.Fatalf("event %d: %q, %v", n, f.Data, err)
			}
			n++
			sent <- struct{}{} // the writer is still there: nothing more was sent
		}
		if n != 3 {
			t.Errorf("%q: %d events", blank, n)
		}
	}
}

func TestServerSentStopsWhenAsked(t *testing.T) {
	r := strings.NewReader("data: 1\n\ndata: 2\n\n")
	for f := range ServerSentEvents(r) {
		if string(f.Data) != "1" {
			t.Fatalf("data %q", f.Data)
		}
		break
	}
	for range ServerSentEvents(iotest.ErrReader(io.ErrUnexpectedEOF)) {
		break
	}
}

func TestServerSentErrors(t *testing.T) {
	if _, err := readEvents(iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read error: %v", err)
	}
	if _, err := readEvents(lazyReader{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("reader that gives nothing: %v", err)
	}
}

// lazyReader gives neither bytes nor an error.
type lazyReader struct{}

func (lazyReader) Read([]byte) (int, error) { return 0, nil }

func TestServerSentLimit(t *testing.T) {
	const limit = 5000
	first := "data: first\n\n"
	for _, c := range []struct {
		name, in string
		long     bool
	}{
		{"data of the limit", "data: " + strings.Repeat("x", limit) + "\r\n\r\n", false},
		{"data beyond the limit", "data: " + strings.Repeat("x", limit+1) + "\n\n", true},
		{"data beyond the limit, no line end", "data: " + strings.Repeat("x", limit+1), true},
		{"endless line", "data: " + strings.Repeat("x", 10*limit), true},
		{"endless comment", ": " + strings.Repeat("x", 10*limit), true},
		{"lines of the limit", strings.Repeat("data: "+strings.Repeat("x", 99)+"\n", 50) + "data\n\n", false},
		{"lines beyond the limit", strings.Repeat("data: "+strings.Repeat("x", 99)+"\n", 51) + "\n", true},
		{"many comments", "data: " + strings.Repeat("x", 4000) + "\n" + strings.Repeat(": "+strings.Repeat("c", 500)+"\n", 100) + "data: y\n\n", false},
		{"many empty lines", strings.Repeat("data\n", limit) + "\n", false},
		{"many frames", strings.Repeat("data: x\n\n", limit), false},
	} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytewise": iotest.OneByteReader, "by halves": iotest.HalfReader,
		} {
			var got []event
			var err error
			for f, e := range serverSentEvents(wrap(strings.NewReader(first+c.in)), limit) {
				if err = e; e == nil {
					got = append(got, event{f.Event, f.ID, string(f.Data)})
				}
			}
			want := plainEvents(first + c.in)
			if c.long {
				want = want[:1]
			}
			if errors.Is(err, llm.ErrTooLong) != c.long || !slices.Equal(got, want) {
				t.Errorf("%s, %s: %d events, %v; want %d, too long: %t", c.name, name, len(got), err, len(want), c.long)
			}
		}
	}
}

// endless repeats one byte for ever.
type endless byte

func (e endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(e)
	}
	return len(b), nil
}

func TestServerSentLongEvents(t *testing.T) {
	if !torture() {
		t.Skip("needs 200 MB")
	}
	const long = 34 << 20
	in := io.MultiReader(strings.NewReader("data: "), io.LimitReader(endless('x'), long), strings.NewReader("\n\ndata: next\n\n"))
	var sizes []int
	for f, err := range ServerSentEvents(in) {
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(f.Data))
	}
	if !slices.Equal(sizes, []int{long, 4}) {
		t.Errorf("events of %d bytes", sizes)
	}

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readEvents(io.MultiReader(strings.NewReader("data: "), endless('x')))
	runtime.ReadMemStats(&after)
	if !errors.Is(err, llm.ErrTooLong) || !strings.Contains(err.Error(), "64 MiB") {
		t.Errorf("endless line: %v", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 4*maxEvent {
		t.Errorf("an endless line costs %d MiB", used>>20)
	}
}

// sizedReader reads a few bytes at a time, as sizes say.
type sizedReader struct {
	r     io.Reader
	sizes []byte
	i     int
}

func (s *sizedReader) Read(b []byte) (int, error) {
	if len(s.sizes) > 0 {
		n := 1 + int(s.sizes[s.i%len(s.sizes)])
		s.i++
		b = b[:min(n, len(b))]
	}
	return s.r.Read(b)
}

func FuzzServerSent(f *testing.F) {
	for _, s := range []string{
		"", "data: a\n\n", "\xEF\xBB\xBFevent: e\r\ndata: a\r\ndata\r\rid: 1\n\n", ": c\n\ndata:a\ndata: b\nevent:x\n\ndat",
		strings.Repeat("data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", 200) + "\n",
	} {
		f.Add([]byte(s), []byte{0, 5, 90})
	}
	f.Fuzz(func(t *testing.T, in, sizes []byte) {
		want := plainEvents(string(in))
		got, err := readEvents(&sizedReader{r: bytes.NewReader(in), sizes: sizes})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: %q, %v; want %q", in, got, err, want)
		}
		for _, err := range serverSentEvents(bytes.NewReader(in), 16) {
			if err != nil && !errors.Is(err, llm.ErrTooLong) {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkServerSent(b *testing.B) {
	chunk := `data: {"id":"hm","object":"chat.completion.chunk","created":1,"model":"hm-model","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}` + "\n\n"
	in := []byte(strings.Repeat("event: chunk\n"+chunk, 1000))
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range ServerSentEvents(bytes.NewReader(in)) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 1000 {
			b.Fatal(n)
		}
	}
}
