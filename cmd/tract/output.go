package main

import (
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/format"
)

// Results go to stdout, everything else to stderr. Stored text reaches a terminal only through
// package format.

func (a *app) printer() *format.Printer { return a.screen.printer(a.out) }

func (a *app) stderrPrinter() *format.Printer { return a.screen.printer(a.errOut) }

// emit writes a result: v as JSON with --json, otherwise what show prints.
func (a *app) emit(v any, show func(p *format.Printer)) error {
	if a.json {
		return format.Encode(a.out, v)
	}
	p := a.printer()
	show(p)
	return p.Err()
}

// emitPage is emit for a result that may be longer than the screen.
func (a *app) emitPage(v any, show func(p *format.Printer)) error {
	if a.json {
		return format.Encode(a.out, v)
	}
	return a.printPaged(show)
}

func (a *app) emitRows(v any, rows [][]string) error {
	return a.emit(v, func(p *format.Printer) { p.Table(rows) })
}

// writeList writes a sequence as one JSON array or, with lines, as one JSON value per line.
func writeList[T any](a *app, lines bool, values iter.Seq2[T, error], toJSON func(T) any) error {
	list := []any{}
	for v, err := range values {
		if err == nil && lines {
			err = format.EncodeLine(a.out, toJSON(v))
		}
		if err != nil {
			return err
		}
		list = append(list, toJSON(v))
	}
	if lines {
		return nil
	}
	return format.Encode(a.out, list)
}

// emitList writes a sequence as JSON, as writeList does, or prints its values as they come.
func emitList[T any](a *app, lines bool, values iter.Seq2[T, error], toJSON func(T) any, show func(*format.Printer, T)) error {
	if a.json || lines {
		return writeList(a, lines, values, toJSON)
	}
	return a.writePaged(func(w io.Writer, o format.Options) error {
		p := format.New(w, o)
		for v, err := range values {
			if err != nil {
				return err
			}
			if show(p, v); p.Err() != nil {
				break
			}
		}
		return p.Err()
	})
}

// collectUntilError returns the values of a sequence up to its first error.
func collectUntilError[T any](values iter.Seq2[T, error]) (list []T, err error) {
	for v, err := range values {
		if err != nil {
			return list, err
		}
		list = append(list, v)
	}
	return list, nil
}

// mapSlice returns what f returns for each value of a list; never nil, which JSON would write as null.
func mapSlice[T, U any](values []T, f func(T) U) []U {
	list := make([]U, 0, len(values))
	for _, v := range values {
		list = append(list, f(v))
	}
	return list
}

// plainCommit returns a commit without decorations, for output that does not know its history.
func plainCommit(c *commit.Commit) format.Commit { return format.Commit{Commit: c, Level: c.Priority} }

// writeTerminalSafeJSON writes JSON to stdout; on a terminal, with escapes for what could control
// it.
func (a *app) writeTerminalSafeJSON(json []byte) error {
	if isTerminal(a.out) {
		json = format.EscapeJSON(json)
	}
	_, err := a.out.Write(json)
	return err
}

// info prints a message on stderr, unless --json is given.
func (a *app) info(text string, args ...any) {
	if !a.json {
		fmt.Fprintf(a.errOut, "tract: %s\n", format.Line(fmt.Sprintf(text, args...)))
	}
}

// debug prints a message on stderr with --verbose, after the current line of a streaming answer.
func (a *app) debug(text string, args ...any) {
	if !a.verbose {
		return
	}
	a.pendingDebug = append(a.pendingDebug, fmt.Sprintf("tract: debug: %s\n", format.Line(fmt.Sprintf(text, args...))))
	if !a.streaming {
		a.flushDebug()
	}
}

// flushDebug prints the messages that waited for the end of an answer.
func (a *app) flushDebug() {
	for _, line := range a.pendingDebug {
		fmt.Fprint(a.errOut, line)
	}
	a.streaming, a.pendingDebug = false, nil
}

// count returns a number with its noun, such as "1 commit" or "3 branches".
func count[N int | int64 | uint64](n N, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "ch"):
		noun += "es"
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ey"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun //nolint:gosec // a count
}

// kib returns a number of bytes in KiB, rounded up.
func kib(bytes int64) string { return fmt.Sprintf("%d KiB", (bytes+1023)/1024) }
