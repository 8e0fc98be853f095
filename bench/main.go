// Bench measures tract against the programs and files that people would use instead: a flat
// file, a file of JSON lines, bare bbolt, SQLite and git. Both sides run in turns within one
// run, because the speed of a disk changes: ratios can be compared between machines, times
// cannot.
//
//	go run . -quick
//	go run . -sizes 1000,10000,100000,1000000 -out bench.json -compare old.json
//
// lines.go lists the measurements. A result that has a limit gets a verdict.
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
	dir         string // for the stores; removed at the end
	duration    time.Duration
	rounds      int
	turns       int   // of the measured conversations
	sizes       []int // ascending
	pkg         string
	sqlitePkg   string
	progressOut io.Writer
	begun       time.Time

	program   string // path of tract; empty: not built
	sqlite    *sqlite
	histories map[historyKey]*history
	gits      map[int]*gitRepo
	report    report
}

// options are the arguments that bench has no field for.
type options struct {
	dir, from, file, doc, compare string
	only                          *regexp.Regexp
}

// run measures, prints the table and writes the files that the arguments name.
func run(ctx context.Context, args []string, out, errOut io.Writer) (err error) {
	b := &bench{progressOut: errOut, begun: time.Now(), histories: map[historyKey]*history{}, gits: map[int]*gitRepo{}}
	c, err := b.parseArgs(args, errOut)
	if err != nil {
		return err
	}
	var old *report
	if c.compare != "" { // report a bad file before measuring for an hour
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
		b.report.printChanges(out, old)
	}
	if c.file != "" && c.from == "" {
		err = b.report.write(c.file)
	}
	if c.doc != "" {
		err = errors.Join(err, b.report.document(c.doc))
	}
	return err
}

// measure runs the measurements.
func (b *bench) measure(ctx context.Context, c options) (err error) {
	if b.dir, err = os.MkdirTemp(c.dir, ".bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.sqlite.close(), os.RemoveAll(b.dir)) }()
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
		b.progress("%s", l.name)
		if err := l.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	b.report.LoadAfter = load()
	return nil
}

// parseArgs parses the arguments.
func (b *bench) parseArgs(args []string, errOut io.Writer) (c options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(errOut)
	sizes := flags.String("sizes", "1000,10000,100000,1000000", "commits of the measured histories, comma separated")
	only := flags.String("only", "", "measure only the lines whose name matches this `pattern`: "+lineNames())
	quick := flags.Bool("quick", false, "small histories and few rounds: a check that everything works, not for figures")
	flags.StringVar(&c.from, "from", "", "print, compare and publish the results in this `file` of an earlier run instead of measuring")
	flags.StringVar(&c.file, "out", "bench.json", "file for the results; empty: none")
	flags.StringVar(&c.doc, "doc", "", "replace the table in this `page`, such as ../docs/bench.md")
	flags.StringVar(&c.compare, "compare", "", "print the ratios that differ by more than 20 % from those in this `file` of an earlier run")
	flags.StringVar(&c.dir, "dir", ".", "folder for the stores, on a disk and not in memory")
	flags.DurationVar(&b.duration, "time", 3*time.Second, "duration of each measurement of writes")
	flags.IntVar(&b.rounds, "rounds", 7, "repetitions of each slow measurement")
	flags.IntVar(&b.turns, "turns", 200, "turns of the measured conversations")
	flags.StringVar(&b.pkg, "program", "../cmd/tract", "folder of the tract program to build; empty: measure without the program")
	flags.StringVar(&b.sqlitePkg, "sqlite", "sqlite", "folder of the SQLite program to build, which takes a C compiler and a minute; empty: measure without SQLite")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("bench: unexpected argument %q: see -help", flags.Arg(0))
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
	if b.turns < 2 {
		return c, fmt.Errorf("-turns %d: want at least 2", b.turns)
	}
	if c.only, err = regexp.Compile(*only); err != nil {
		return c, fmt.Errorf("-only %q: %w", *only, err)
	}
	if !slices.ContainsFunc(lines, func(l line) bool { return c.only.MatchString(l.name) }) {
		return c, fmt.Errorf("-only %q: no measurement matches; the names are %s", *only, lineNames())
	}
	for size := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 {
			return c, fmt.Errorf("-sizes %q: want numbers separated by commas", *sizes)
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

// prepare builds the programs and begins the report.
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

// progress prints the state of the run.
func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(b.progressOut, "bench: %4.0fs "+format+"\n", append([]any{time.Since(b.begun).Seconds()}, args...)...)
}

// hasTool reports whether a program is installed, and records what is skipped if it is not.
func (b *bench) hasTool(name, what string) bool {
	_, err := exec.LookPath(name)
	if err != nil {
		b.skip(what, name+" is not installed")
	}
	return err == nil
}

// skip records a measurement that is left out and the reason.
func (b *bench) skip(what, why string) {
	if note := what + ": " + why; !slices.Contains(b.report.Missing, note) {
		b.progress("  left out: %s", note)
		b.report.Missing = append(b.report.Missing, note)
	}
}
