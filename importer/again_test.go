package importer

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
)

// mixed is a conversation with a message on each line, more than is read at once: words,
// words with escapes, calls, results, and members that nobody knows.
func mixed(format Format) string {
	var text strings.Builder
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"f","arguments":"{\"a\":\"%s\"}"}}]}`
	result := `{"role":"tool","tool_call_id":"c%d","content":"%s"}`
	if format == Anthropic {
		call = `{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"f","input":{"a":"%s"},"x_note":[1]}]}`
		result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":[{"type":"text","text":"%s"}]}]}`
	}
	for i := range 4000 {
		words := fmt.Sprintf("%d %s", i, strings.Repeat("words ", i%50))
		switch i % 5 {
		case 0:
			fmt.Fprintf(&text, `{"role":"user","content":"%s"}`, words)
		case 1:
			fmt.Fprintf(&text, `{"role":"assistant","content":"%s\n\u00e9\"","note":{"of":"%s"}}`, words, words)
		case 2:
			fmt.Fprintf(&text, call, i, words)
		case 3:
			fmt.Fprintf(&text, result, i-1, words)
		case 4:
			fmt.Fprintf(&text, `{"role":"user","content":[{"type":"text","text":"%s","x_note":["%s"]}]}`, words, words)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// TestAFileThatIsReadAgain to find out what it is gives what one does that cannot be read
// twice and is kept in memory: also what was given first is so at the end.
func TestAFileThatIsReadAgain(t *testing.T) {
	for _, format := range []Format{OpenAI, Anthropic} {
		text := mixed(format)
		name := filepath.Join(t.TempDir(), "log.jsonl")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var twice, once []Entry
		for e, err := range Read("log", f, Auto) {
			if err != nil {
				t.Fatal(err)
			}
			twice = append(twice, e)
		}
		for e, err := range Read("log", io.MultiReader(strings.NewReader(text)), Auto) {
			if err != nil {
				t.Fatal(err)
			}
			once = append(once, e)
		}
		if len(once) != 4000 || len(twice) != len(once) {
			t.Fatalf("%s: %d entries of a file, %d of a pipe", format, len(twice), len(once))
		}
		for i := range once {
			for k, p := range once[i].Parts {
				q := twice[i].Parts[k]
				if p.ID != q.ID || !bytes.Equal(content.Encode(p.Block), content.Encode(q.Block)) {
					t.Fatalf("%s: line %d is %+v of a file, %+v of a pipe", format, i+1, q.Block, p.Block)
				}
			}
		}
	}
}

// unseekable is a file that gives an error when it is to be read again.
type unseekable struct {
	*strings.Reader
	err error
}

func (u *unseekable) Seek(at int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		return 0, u.err
	}
	return u.Reader.Seek(at, whence)
}

// TestAFileThatCannotBeReadAgain, although it said so, is an error behind the first line.
func TestAFileThatCannotBeReadAgain(t *testing.T) {
	for _, err := range Read("log", &unseekable{strings.NewReader(mixed(OpenAI)), io.ErrUnexpectedEOF}, Auto) {
		if err == nil {
			continue // the first line was read
		}
		if !strings.Contains(err.Error(), "log:2: "+io.ErrUnexpectedEOF.Error()) {
			t.Error(err)
		}
		return
	}
	t.Error("it was read")
}
