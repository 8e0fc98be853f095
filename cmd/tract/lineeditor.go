package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tract-vcs/tract/format"
	"golang.org/x/term"
)

// lineEditor reads text from a terminal: lines with editing and history, pastes of any length,
// and several lines with Alt-Enter.
type lineEditor struct {
	in       *os.File
	term     *term.Terminal
	keys     *keyReader
	finished []string // the lines before the one that is edited
}

// newlineKey replaces Alt-Enter in the input of the terminal package, which does not know that
// key.
const newlineKey = 0x0f

func newLineEditor(in *os.File, out io.Writer) *lineEditor {
	e := &lineEditor{in: in, keys: &keyReader{in: in}}
	e.term = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{e.keys, out}, "")
	e.term.AutoCompleteCallback = func(line string, _ int, key rune) (string, int, bool) {
		if key != newlineKey {
			return "", 0, false
		}
		e.finished = append(e.finished, line)
		fmt.Fprintf(e.term, "  %s\n", line)
		return "", 0, true
	}
	return e
}

// read returns one text, or io.EOF after Ctrl-D or Ctrl-C.
func (e *lineEditor) read(prompt string) (string, error) {
	state, err := term.MakeRaw(int(e.in.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(e.in.Fd()), state) //nolint:errcheck // nothing better can be done
	if columns := terminalWidth(e.in); columns > 0 {
		_ = e.term.SetSize(columns, 24) // only the width matters
	}
	e.term.SetPrompt(prompt)
	e.term.SetBracketedPasteMode(true)
	defer e.term.SetBracketedPasteMode(false)
	e.finished, e.keys.pastes = nil, nil
	line, err := e.term.ReadLine()
	if err != nil {
		return "", err
	}
	text := strings.Join(append(e.finished, line), "\n")
	for _, p := range e.keys.pastes {
		text = strings.Replace(text, p.name, p.text, 1)
	}
	return text, nil
}

// paste is a pasted text and its placeholder in the line.
type paste struct{ name, text string }

// keyReader filters keys for the terminal package, which truncates long lines: a long paste
// becomes a placeholder.
type keyReader struct {
	in        io.Reader
	undecoded []byte // read, and not understood yet
	ready     []byte
	pastes    []paste
}

var (
	pasteBegin = []byte("\x1b[200~")
	pasteEnd   = []byte("\x1b[201~")
)

// longestTyped is the longest paste, in bytes, that is inserted into the line as if typed.
const longestTyped = 400

// Read returns keys.
func (k *keyReader) Read(p []byte) (int, error) {
	for buf := make([]byte, 4096); len(k.ready) == 0; {
		n, err := k.in.Read(buf)
		if n == 0 && err != nil {
			return 0, err
		}
		k.undecoded = append(k.undecoded, buf[:n]...)
		k.decode()
	}
	n := copy(p, k.ready)
	k.ready = k.ready[n:]
	return n, nil
}

// decode moves complete keys and pastes from undecoded to ready.
func (k *keyReader) decode() {
	for len(k.undecoded) > 0 {
		at := bytes.IndexByte(k.undecoded, 0x1b)
		if at < 0 {
			k.ready, k.undecoded = append(k.ready, k.undecoded...), nil
			return
		}
		k.ready, k.undecoded = append(k.ready, k.undecoded[:at]...), k.undecoded[at:]
		switch {
		case len(k.undecoded) == 1:
			return // the rest of the key is to come
		case k.undecoded[1] == '\r' || k.undecoded[1] == '\n':
			k.ready, k.undecoded = append(k.ready, newlineKey), k.undecoded[2:]
		case bytes.HasPrefix(k.undecoded, pasteBegin):
			end := bytes.Index(k.undecoded, pasteEnd)
			if end < 0 {
				return
			}
			k.addPaste(string(k.undecoded[len(pasteBegin):end]))
			k.undecoded = k.undecoded[end+len(pasteEnd):]
		case bytes.HasPrefix(pasteBegin, k.undecoded):
			return
		default:
			k.ready, k.undecoded = append(k.ready, k.undecoded[0]), k.undecoded[1:]
		}
	}
}

func (k *keyReader) addPaste(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	clean := format.Line(text) == text && !strings.ContainsAny(text, "\t\uFFFD")
	if clean && len(text) <= longestTyped {
		k.ready = append(k.ready, text...)
		return
	}
	name := fmt.Sprintf("[paste %d: %d bytes, %d lines]", len(k.pastes)+1, len(text), strings.Count(text, "\n")+1)
	k.pastes = append(k.pastes, paste{name, text})
	k.ready = append(k.ready, name...)
}
