package importer

import "bytes"

// plain tells whether a line is a message that says nothing of its format, written as
// most programs write it: who says it, and his words. Of whether the words are JSON it
// knows only where they end: to read them all takes many times as long.
func plain(line []byte) bool {
	for _, token := range []string{`{`, `"role":`} {
		if line = after(line, token); line == nil {
			return false
		}
	}
	said := after(line, `"user",`)
	if said == nil {
		said = after(line, `"assistant",`)
	}
	words, ends := bytes.CutSuffix(after(said, `"content":`), []byte(`"}`))
	return ends && len(words) > 0 && words[0] == '"' && between(words[1:])
}

// after is what comes after a token, and a space behind it; nil: something else is there.
func after(line []byte, token string) []byte {
	if len(line) < len(token) || string(line[:len(token)]) != token {
		return nil
	}
	return bytes.TrimPrefix(line[len(token):], []byte{' '})
}

// between tells whether a string that begins before some bytes ends behind them.
func between(words []byte) bool {
	for from := 0; ; {
		n := bytes.IndexByte(words[from:], '"')
		if n < 0 {
			return !escapes(words)
		}
		if from += n + 1; !escapes(words[:from-1]) {
			return false
		}
	}
}

// escapes tells whether what follows some bytes of a string is escaped by them.
func escapes(words []byte) bool {
	n := 0
	for n < len(words) && words[len(words)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}
