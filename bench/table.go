package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

// head describes the time and the machine of a run.
func (r *report) head() string {
	return fmt.Sprintf("%s, %s %s/%s, %d CPUs %s, load %.1f before and %.1f after; %s",
		r.Time.Format(time.RFC3339), r.Go, r.OS, r.Arch, r.CPUs, r.CPU, r.LoadBefore, r.LoadAfter, strings.Join(r.Tools, "; "))
}

// columns are the headings of the table.
var columns = []string{"work", "median", "baseline", "its median", "p90/p10", "load", "ratio", "limit", "verdict"}

// row returns the cells of a result.
func (r result) row() []string {
	row := []string{r.Name, quantity(r.Value, r.Unit), "", "", "", number(r.Load), "", "", r.Verdict}
	if r.BaselineName != "" {
		row[2], row[3], row[4], row[6] = r.BaselineName, quantity(r.Baseline, r.Unit), number(r.Spread), number(r.Ratio)
	}
	if r.Verdict != "" {
		sign := map[bool]string{false: "≤ ", true: "≥ "}[r.AtLeast]
		row[7] = sign + number(r.Limit)
	}
	return row
}

func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", r.head())
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(columns, "\t"))
	for _, res := range r.Results {
		fmt.Fprintln(t, strings.Join(res.row(), "\t"))
	}
	_ = t.Flush() // to a terminal or a pipe; there is nothing else to do
	for _, m := range r.Missing {
		fmt.Fprintf(w, "left out: %s\n", m)
	}
}

// docMark precedes the table of the newest run in a page.
const docMark = "<!-- What follows is written by bench -doc. -->\n"

// readPage returns the part of a page before the table.
func readPage(path string) (before []byte, err error) {
	page, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	before, _, found := bytes.Cut(page, []byte(docMark))
	if !found {
		return nil, fmt.Errorf("put the table into %s: it has no line %q to put it after", path, strings.TrimSpace(docMark))
	}
	return before, nil
}

// document replaces the table in a page.
func (r *report) document(path string) error {
	before, err := readPage(path)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%s\n%s\n\n", before, docMark, r.head())
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, res := range r.Results {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(res.row(), " | "))
	}
	for i, m := range r.Missing {
		fmt.Fprintf(&b, "%sLeft out: %s.\n", map[bool]string{true: "\n"}[i == 0], m)
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

// oneLine formats a result for the progress output.
func (r result) oneLine() string {
	text := r.Name + ": " + quantity(r.Value, r.Unit)
	if r.BaselineName != "" {
		text += fmt.Sprintf(", %s x %s (%s)", number(r.Ratio), r.BaselineName, quantity(r.Baseline, r.Unit))
	}
	if r.Verdict != "" {
		text += ": " + r.Verdict
	}
	return text
}

func quantity(v float64, unit string) string { return strings.TrimSpace(number(v) + " " + unit) }

// number formats a value with three significant digits and without an exponent.
func number(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// round keeps four significant digits.
func round(v float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*unit) / unit
}

// moved is the relative change from which on printChanges prints a result.
const moved = 0.2

// printChanges prints the results that differ from those of an earlier run.
func (r *report) printChanges(w io.Writer, old *report) {
	fmt.Fprintf(w, "\nmoved by more than %.0f %% since %s:\n", 100*moved, old.Time.Format(time.RFC3339))
	was := map[string]result{}
	for _, res := range old.Results {
		was[res.Name] = res
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	found := false
	for _, res := range r.Results {
		before, now := was[res.Name].compared(), res.compared()
		if before == 0 || now == 0 || math.Abs(now/before-1) <= moved {
			continue
		}
		found = true
		word := map[bool]string{true: "better", false: "worse"}[now > before == res.HigherIsBetter]
		if max(res.Spread, was[res.Name].Spread) > unsteady {
			word += ", unsteady"
		}
		fmt.Fprintf(t, "  %s\t%s -> %s\t%s\n", res.Name, number(before), number(now), word)
	}
	_ = t.Flush()
	if !found {
		fmt.Fprintln(w, "  nothing")
	}
}

// compared returns the number that runs are compared by: the ratio, or the value where
// there is no baseline.
func (r result) compared() float64 {
	if r.BaselineName != "" {
		return r.Ratio
	}
	return r.Value
}
