// Bench measures a store as a program on this machine has it, each thing beside
// what people would use instead: a flat file, a file of JSON lines, bare bbolt,
// SQLite, git. Both sides take turns within one run, because a disk is never twice
// the same: the ratio travels, the time does not.
//
//	go run . -quick
//	go run . -sizes 1000,10000,100000,1000000 -out bench.json -compare old.json
//
// What is measured is the table in lines.go. Where a goal is known the table of
// results has a verdict.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if isChild(os.Args[1:]) {
		if err := child(os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %v\n", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "bench: error: %v\n", err)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	dir       string // of its own, removed at the end
	lasting   time.Duration
	rounds    int
	sizes     []int // ascending
	pkg       string
	sqlitePkg string
	story     io.Writer
	begun     time.Time

	program   string // the program that was built; empty: none
	sqlite    *sqlite
	histories map[int]*history
	gits      map[int]*gitRepo
	report    report
}

// choices is what the arguments say about a run, beside what a bench has.
type choices struct {
	dir, from, file, doc, compare string
	only                          *regexp.Regexp
}

// run measures what the arguments say, prints a table and writes files.
func run(ctx context.Context, args []string, out, errOut io.Writer) (err error) {
	b := &bench{story: errOut, begun: time.Now(), histories: map[int]*history{}, gits: map[int]*gitRepo{}}
	c, err := b.choose(args, errOut)
	if err != nil {
		return err
	}
	var old *report
	if c.compare != "" { // before an hour of measuring, not after
		if old, err = readReport(c.compare); err != nil {
			return err
		}
	}
	if c.doc != "" {
		if _, err := readPage(c.doc); err != nil {
			return err
		}
	}
	if c.from != "" {
		earlier, err := readReport(c.from)
		if err != nil {
			return err
		}
		b.report = *earlier
	} else if err := b.measure(ctx, c); err != nil {
		return err
	}
	b.report.print(out)
	if old != nil {
		b.report.compare(out, old)
	}
	if c.file != "" && c.from == "" {
		err = b.report.write(c.file)
	}
	if c.doc != "" {
		err = errors.Join(err, b.report.document(c.doc))
	}
	return err
}

// measure goes through the lines.
func (b *bench) measure(ctx context.Context, c choices) (err error) {
	if b.dir, err = os.MkdirTemp(c.dir, ".bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.sqlite.shut(), os.RemoveAll(b.dir)) }()
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return err
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	for _, l := range lines {
		if !c.only.MatchString(l.name) {
			continue
		}
		b.telling("%s", l.name)
		if err := l.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	b.report.LoadAfter = load()
	return nil
}

// choose reads the arguments.
func (b *bench) choose(args []string, errOut io.Writer) (c choices, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(errOut)
	sizes := flags.String("sizes", "1000,10000,100000,1000000", "commits of the histories that are measured")
	only := flags.String("only", "", "measure only the lines whose name matches this `pattern`: "+lineNames())
	quick := flags.Bool("quick", false, "small histories and few rounds: to see that all works, not for figures")
	flags.StringVar(&c.from, "from", "", "`file` of an earlier run, to be printed, compared and put into a page instead of measuring")
	flags.StringVar(&c.file, "out", "bench.json", "file to write; empty: none")
	flags.StringVar(&c.doc, "doc", "", "`page` to put the table into, such as ../docs/bench.md")
	flags.StringVar(&c.compare, "compare", "", "`file` of an earlier run: say which ratios moved by more than 20 %")
	flags.StringVar(&c.dir, "dir", ".", "where the stores are made: a disk, not a file system in memory")
	flags.DurationVar(&b.lasting, "time", 3*time.Second, "how long each way of writing is measured")
	flags.IntVar(&b.rounds, "rounds", 7, "how often each side of what is slow is measured")
	flags.StringVar(&b.pkg, "program", "../cmd/tract", "folder of the program to build and start; empty: none")
	flags.StringVar(&b.sqlitePkg, "sqlite", "sqlite", "folder of the program that runs SQLite, to build (with a C compiler, a minute the first time); empty: none")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("bench: no argument wanted, got %q: see -help", flags.Arg(0))
	}
	if *quick {
		for name, value := range map[string]string{"sizes": "100,2000", "time": "300ms", "rounds": "3"} {
			if !isSet(flags, name) {
				if err := flags.Set(name, value); err != nil {
					return c, err
				}
			}
		}
	}
	if b.rounds < 1 {
		return c, fmt.Errorf("-rounds %d: want at least 1", b.rounds)
	}
	if c.only, err = regexp.Compile(*only); err != nil {
		return c, fmt.Errorf("-only %q: %w", *only, err)
	}
	if !slices.ContainsFunc(lines, func(l line) bool { return c.only.MatchString(l.name) }) {
		return c, fmt.Errorf("-only %q: no line has that in its name; there are %s", *only, lineNames())
	}
	for size := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 {
			return c, fmt.Errorf("-sizes %q: want numbers with commas between", *sizes)
		}
		b.sizes = append(b.sizes, n)
	}
	slices.Sort(b.sizes)
	b.sizes = slices.Compact(b.sizes)
	return c, nil
}

func isSet(flags *flag.FlagSet, name string) (set bool) {
	flags.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// prepare builds what is started and says on which machine.
func (b *bench) prepare(ctx context.Context) error {
	b.report = newReport()
	if err := b.buildProgram(ctx); err != nil {
		return err
	}
	if err := b.startSQLite(ctx); err != nil {
		return err
	}
	b.report.tools(ctx, b)
	return nil
}

// telling says what is being measured: some of it takes a while.
func (b *bench) telling(format string, args ...any) {
	fmt.Fprintf(b.story, "bench: %4.0fs "+format+"\n", append([]any{time.Since(b.begun).Seconds()}, args...)...)
}

// has tells whether a program to measure is installed, and notes when it is not.
func (b *bench) has(name, what string) bool {
	_, err := exec.LookPath(name)
	if err != nil {
		b.missing(what, "there is no "+name)
	}
	return err == nil
}

// missing notes what could not be measured, and why.
func (b *bench) missing(what, why string) {
	if note := what + ": " + why; !slices.Contains(b.report.Missing, note) {
		b.telling("  left out: %s", note)
		b.report.Missing = append(b.report.Missing, note)
	}
}
