package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tract-vcs/tract/format"
	"golang.org/x/term"
)

// screen describes the terminal: its width, its colors, and the pager.
type screen struct {
	out, errOut io.Writer
	color       string // --color
	noPager     bool
	raw         bool // --raw: stored text goes out as it is
	pager       string

	background *format.Background // once it was asked for
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printer returns a printer for a stream, with the colors and width that the stream supports.
func (s *screen) printer(w io.Writer) *format.Printer { return format.New(w, s.options(w)) }

// printerWithShadedReasoning returns a printer that shades reasoning. To choose the shade, it asks
// the terminal for its background color.
func (s *screen) printerWithShadedReasoning(w io.Writer) *format.Printer {
	return format.New(w, s.optionsWithShadedReasoning(w))
}

func (s *screen) optionsWithShadedReasoning(w io.Writer) format.Options {
	o := s.options(w)
	if o.Color {
		o.Background = s.terminalBackground(w)
	}
	return o
}

// options returns the format options for a stream.
func (s *screen) options(w io.Writer) format.Options {
	o := format.Options{Color: s.usesColor(w), Raw: s.raw, Now: time.Now(), Zone: time.Local}
	if isTerminal(w) {
		o.Width = terminalWidth(w)
	}
	return o
}

// usesColor reports whether output to a stream is colored.
func (s *screen) usesColor(w io.Writer) bool {
	force := os.Getenv("CLICOLOR_FORCE")
	switch {
	case s.color == "always":
		return true
	case s.color == "never", os.Getenv("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	case os.Getenv("CLICOLOR") == "0", os.Getenv("TERM") == "dumb":
		return false
	}
	return isTerminal(w)
}

// terminalWidth returns the number of columns of the terminal that a stream is, or that COLUMNS says;
// 0 if unknown.
func terminalWidth(stream any) (columns int) {
	if f, ok := stream.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	columns, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil || columns < 0 {
		return 0
	}
	return columns
}

// terminalBackground returns the background from COLORFGBG, or asks the terminal.
func (s *screen) terminalBackground(w io.Writer) format.Background {
	if s.background != nil {
		return *s.background
	}
	found := parseColorFGBG(os.Getenv("COLORFGBG"))
	if found == format.Unknown && isTerminal(w) {
		found = queryBackground()
	}
	s.background = &found
	return found
}

// parseColorFGBG returns the background that a value of COLORFGBG names: "FOREGROUND;BACKGROUND"
// with colours by number.
func parseColorFGBG(colors string) format.Background {
	n, err := strconv.Atoi(colors[strings.LastIndexByte(colors, ';')+1:])
	switch {
	case err != nil || n < 0 || n > 15:
		return format.Unknown
	case n == 7 || n > 8:
		return format.Light
	}
	return format.Dark
}

// queryTimeout is how long a terminal may take to report its background.
const queryTimeout = 100 * time.Millisecond

// queryBackground asks the terminal for its background color (OSC 11) and for its attributes,
// which every terminal reports: one without OSC 11 costs no wait. It opens the terminal anew, so
// that the read has a deadline and takes nothing from stdin.
func queryBackground() format.Background {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return format.Unknown
	}
	defer tty.Close() //nolint:errcheck // it was only asked
	raw, err := tty.SyscallConn()
	if err != nil || tty.SetReadDeadline(time.Now().Add(queryTimeout)) != nil {
		return format.Unknown
	}
	var state *term.State
	var stateErr error
	if err := raw.Control(func(fd uintptr) { state, stateErr = term.MakeRaw(int(fd)) }); err != nil || stateErr != nil {
		return format.Unknown
	}
	defer raw.Control(func(fd uintptr) { _ = term.Restore(int(fd), state) }) //nolint:errcheck // nothing better can be done
	if _, err := io.WriteString(tty, "\x1b]11;?\x1b\\\x1b[c"); err != nil {
		return format.Unknown
	}
	return parseBackgroundReply(readTerminalReply(tty))
}

// readTerminalReply reads what a terminal answers to a query, until the attributes ("... c") have
// arrived or the deadline has passed.
func readTerminalReply(tty io.Reader) string {
	var reply []byte
	for buf := make([]byte, 64); len(reply) < 256; {
		n, err := tty.Read(buf)
		reply = append(reply, buf[:n]...)
		if err != nil || n > 0 && buf[n-1] == 'c' {
			break
		}
	}
	return string(reply)
}

// parseBackgroundReply returns the background in a terminal's reply,
// "ESC ] 11 ; rgb:RRRR/GGGG/BBBB".
func parseBackgroundReply(reply string) format.Background {
	_, colors, ok := strings.Cut(reply, "rgb:")
	parts := strings.FieldsFunc(colors, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) })
	if !ok || len(parts) < 3 {
		return format.Unknown
	}
	light := 0.0
	for i, weight := range []float64{0.299, 0.587, 0.114} {
		n, err := strconv.ParseUint(parts[i], 16, 64)
		if err != nil || len(parts[i]) > 4 {
			return format.Unknown
		}
		light += weight * float64(n) / float64(uint64(1)<<(4*len(parts[i]))-1)
	}
	if light > 0.5 {
		return format.Light
	}
	return format.Dark
}

// printPaged prints through the pager if stdout is a terminal, otherwise directly to stdout.
func (a *app) printPaged(show func(p *format.Printer)) error {
	return a.writePaged(func(w io.Writer, o format.Options) error {
		p := format.New(w, o)
		show(p)
		return p.Err()
	})
}

// writePaged is printPaged for a caller that needs the stream itself. Leaving the pager early is no
// error.
func (a *app) writePaged(write func(w io.Writer, o format.Options) error) error {
	options := a.screen.optionsWithShadedReasoning(a.out)
	command := a.screen.pagerCommand()
	if program, _, _ := strings.Cut(strings.TrimSpace(command), " "); command != "" && !programExists(program) {
		a.info("pager %q: not found", command)
		command = ""
	}
	if command == "" {
		return write(a.out, options)
	}
	pager := exec.CommandContext(context.Background(), "sh", "-c", command) // it ends itself: Ctrl-C is a key of its own there
	pager.Stdout, pager.Stderr, pager.Env = a.out, a.errOut, os.Environ()
	if os.Getenv("LESSCHARSET") == "" {
		pager.Env = append(pager.Env, "LESSCHARSET=utf-8")
	}
	pipe, err := pager.StdinPipe()
	if err == nil {
		err = pager.Start()
	}
	if err != nil {
		a.info("pager %q: %s", command, err)
		return write(a.out, options)
	}
	err = write(pipe, options)
	if errors.Is(err, syscall.EPIPE) {
		err = nil
	}
	_ = pipe.Close() // the pager may be gone already
	if waitErr := pager.Wait(); err == nil && waitErr != nil {
		a.info("pager %q: %s", command, waitErr)
	}
	return err
}

// programExists reports whether a shell would find a program. Names with shell syntax are assumed
// to exist.
func programExists(program string) bool {
	if strings.ContainsAny(program, "$`'\"\\;&|<>(){}*?~=") {
		return true
	}
	_, err := exec.LookPath(program)
	return err == nil
}

// pagerCommand returns the command of the pager; empty: none.
func (s *screen) pagerCommand() string {
	if s.noPager || !isTerminal(s.out) {
		return ""
	}
	command, chosen := os.LookupEnv("TRACT_PAGER")
	if !chosen {
		command = firstNonEmpty(s.pager, os.Getenv("PAGER"), "less -FRX")
	}
	if command == "cat" {
		return ""
	}
	return command
}
