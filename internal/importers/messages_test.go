package importers

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tract-vcs/tract/content"
)

// TestFormatsAreDetected reads every form of the two formats.
func TestFormatsAreDetected(t *testing.T) {
	for name, want := range map[string]string{
		"openai-request.json": `: system(Be brief.)
: user(What is this?) image()
: tool-call(call_1) tool-call(call_2)
: tool-result(call_1) tool-result(call_2)
: assistant(A cat that ate fish.)
`,
		"anthropic-messages.json": `: user(Why is the sky blue?)
: reasoning(Rayleigh.) assistant(Scattering.)
: user(And red?)
`,
		"requests.jsonl": `: user(One)
: assistant(1)
: user(Two)
`,
		"messages.jsonl": `: user(Run it.)
: tool-call(message-1/0)
: tool-result(message-1/0)
: assistant(Done.)
`,
	} {
		list, err := own(t, name, Auto)
		if have := said(list); err != nil || have != want {
			t.Errorf("%s: %v\n%swant\n%s", name, err, have, want)
		}
	}
	list, _ := own(t, "requests.jsonl", Auto)
	if list[0].Session != "" || list[2].Session != "2" || list[2].Line != 2 {
		t.Errorf("the sessions are %+v", list)
	}
	list, _ = own(t, "anthropic-messages.json", Auto)
	if th := list[1].Parts[0].Block.(content.Reasoning); list[1].Dialect != "messages" || th.Form().Seal.Data != "sig-1" {
		t.Errorf("the thought is %+v", th)
	}
	list, _ = own(t, "openai-request.json", OpenAI)
	if m := list[1].Parts[1].Block.(content.Media); m.Data != "\x89PNG\r\n\x1a\n" || m.MediaType != "image/png" || list[4].Model != "gpt-5" {
		t.Errorf("the image is %+v", m)
	}
}

// TestOtherRequestBodiesAreReadToo: what one more dialect calls its conversation.
func TestOtherRequestBodiesAreReadToo(t *testing.T) {
	const items = `[{"role":"user","content":"Why?"},{"type":"reasoning","summary":[],"encrypted_content":"s"},
		{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"x"}]`
	for text, dialect := range map[string]string{
		`{"model":"gpt-5","input":` + items + `}`: "responses",
		items: "responses",
		`{"contents":[{"parts":[{"text":"Why?"}]},{"role":"model","parts":[{"text":"","thoughtSignature":"s","thought":true},{"functionCall":{"id":"c1","name":"f"}}]},
			{"parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"x"}}}]}]}`: "gemini",
	} {
		list, err := read(text, Auto)
		const want = ": user(Why?)\n: reasoning() tool-call(c1)\n: tool-result(c1)\n"
		if have := said(list); err != nil || have != want || list[1].Dialect != dialect {
			t.Errorf("%s: %v\n%swant\n%s", text, err, have, want)
		}
	}
}

// TestIdsGrowWithTheConversation: they are the same as long as nothing before them
// changed, whatever shows later.
func TestIdsGrowWithTheConversation(t *testing.T) {
	ids := func(text string) (ids []string) {
		list, err := read(text, Auto)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			for _, p := range e.Parts {
				ids = append(ids, p.ID)
			}
		}
		return ids
	}
	short := ids(`[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`)
	grown := ids(`[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"c"}]}]`)
	other := ids(`[{"role":"user","content":"a"},{"role":"assistant","content":"B"},{"role":"user","content":"a"}]`)
	if len(grown) != 3 || grown[0] != short[0] || grown[1] != short[1] {
		t.Errorf("%v grew to %v", short, grown)
	}
	if other[0] != short[0] || other[1] == short[1] || other[2] == other[0] {
		t.Errorf("another conversation has %v, the first %v", other, short)
	}
}

// TestOtherFilesAreRefused checks that the error names the file and the position.
func TestOtherFilesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "log: it is empty",
		"[]":                    "log: no conversation in a known format: it begins with nothing",
		`{"id":1,"choices":[]}`: "log: no conversation in a known format: it begins with an object of id, choices",
		`{"type":"message","role":"assistant","content":[],"usage":{}}`: "log: it is one response of a model",
		"17":                             "log: no conversation in a known format: it begins with a number",
		"hello":                          "log:1: ",
		`[{"role":"user","content":`:     "log:1: the last line is damaged",
		`{"messages":[{"role":"boss"}]}`: "log:1: decode request: chat: messages[0]: want a message",
		`{"role":"user","content":"a"}` + "\n" + `{"role":"boss"}`: "log:2: ",
	} {
		list, err := read(text, Auto)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q gives %d entries, %v; want %s", text, len(list), err, want)
		}
	}
}

// TestLongLinesAreRefused: a line has a bound, whatever it claims to be.
func TestLongLinesAreRefused(t *testing.T) {
	start := `{"type":"user","uuid":"1","sessionId":"s","parentUuid":null,"message":{"role":"user","content":"a"}}` + "\n"
	endless := io.MultiReader(strings.NewReader(start+`{"type":"user","message":"`), forever{})
	n := 0
	var err error
	for _, err = range Read("log", endless, Auto) {
		if err == nil {
			n++
		}
	}
	if n != 1 || !errors.Is(err, errTooLong) {
		t.Errorf("%d entries, %v", n, err)
	}
	broken := io.MultiReader(strings.NewReader(start), iotest.ErrReader(io.ErrClosedPipe))
	for _, err = range Read("log", broken, Auto) {
		continue
	}
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a file that cannot be read gives %v", err)
	}
}

type forever struct{}

func (forever) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestAMessageThatCannotBeRead is passed over, and its line named.
func TestAMessageThatCannotBeRead(t *testing.T) {
	const good = `{"role":"user","content":"a"}` + "\n" + `{"role":"assistant","content":"b"}` + "\n"
	for text, want := range map[string]string{
		good + "\n" + `{"role":"boss"}` + "\n" + `{"role":"user","content":"c"}`: "log:4: decode message: chat: want a message",
		good + `{"role":"boss"}` + "\n" + `{"role":"user","cont`:                 "log:3: decode message: ",
		good + `{"role":"user","content":[` + "\n" + `{"role":"boss"}`:           "log:3: parse JSON: ",
		good + `{"role":"user","cont`:                                            "log:3: the last line is damaged",
		`{"role":"boss"}` + "\n" + good:                                          "log:1: decode message: ",
	} {
		list, err := read(text, Auto)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasPrefix(said(list), ": user(a)\n: assistant(b)\n") {
			t.Errorf("%q gives %v\n%swant %s", text, err, said(list), want)
		}
	}
}

// TestALineThatFillsTheReader is not read over by what comes after it, wherever it ends.
func TestALineThatFillsTheReader(t *testing.T) {
	const frame = `{"role":"user","content":""}` + "\n"
	for _, size := range []int{64<<10 - 1, 64 << 10, 64<<10 + 1, 128 << 10} {
		long := strings.Repeat("a", size-len(frame))
		first := strings.Replace(frame, `""`, `"`+long+`"`, 1)
		for text, want := range map[string]int{first + strings.Repeat(frame, 4000): 4001, first: 1} {
			list, err := read(text, Auto)
			if err != nil || len(list) != want || list[0].Parts[0].Block.String() != long {
				t.Errorf("a line of %d bytes: %d entries, %v", size, len(list), err)
			}
		}
		over, err := read("["+first+strings.Repeat(","+frame, 4000)+"]", Auto)
		if err != nil || len(over) != 4001 || over[0].Parts[0].Block.String() != long {
			t.Errorf("a text over lines, of which the first has %d bytes: %d entries, %v", size+1, len(over), err)
		}
	}
}
