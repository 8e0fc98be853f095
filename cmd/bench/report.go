package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what bench.json holds.
type report struct {
	Time       time.Time `json:"time"`
	Go         string    `json:"go"`
	OS         string    `json:"os"`
	Arch       string    `json:"arch"`
	CPU        string    `json:"cpu,omitempty"`
	CPUs       int       `json:"cpus"`
	Tools      []string  `json:"tools"` // versions of what the store is held against
	LoadBefore float64   `json:"load_before"`
	LoadAfter  float64   `json:"load_after"`
	Results    []result  `json:"results"`
	Missing    []string  `json:"missing"` // what could not be measured, and why
}

// result is one line of the table.
type result struct {
	Name      string  `json:"name"`
	Value     float64 `json:"value"` // the median
	Unit      string  `json:"unit"`
	Samples   int     `json:"samples"`
	Limit     float64 `json:"limit,omitempty"` // the median of the yardstick, in the same unit
	LimitName string  `json:"limit_name,omitempty"`
	Spread    float64 `json:"spread,omitempty"` // p90 to p10 of the yardstick
	Ratio     float64 `json:"ratio,omitempty"`  // the value to the limit
	Must      float64 `json:"must,omitempty"`   // of the ratio, else of the value
	Aim       float64 `json:"aim,omitempty"`
	More      bool    `json:"more,omitempty"`    // larger is better
	Verdict   string  `json:"verdict,omitempty"` // aim, must, MISSED; unsteady: the spread is too large
	Load      float64 `json:"load"`
}

func newReport() report {
	return report{
		Time: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		CPU: cpuName(), CPUs: runtime.NumCPU(), Tools: []string{}, LoadBefore: load(), Missing: []string{},
	}
}

// tools asks what the store is held against for its versions.
func (r *report) tools(ctx context.Context, b *bench) {
	ask := func(name string, args ...string) {
		if out, err := exec.CommandContext(ctx, name, args...).Output(); err == nil {
			first, _, _ := strings.Cut(string(out), "\n")
			r.Tools = append(r.Tools, strings.Trim(first, "* "))
		}
	}
	if b.program != "" {
		ask(b.program, "version")
	}
	ask("git", "--version")
	ask("zstd", "--version")
	if b.sqlite != nil {
		r.Tools = append(r.Tools, "SQLite "+b.sqlite.version)
	}
}

func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %s %s/%s, %d CPUs %s, load %.2f before and %.2f after\n", r.Time.Format(time.RFC3339), r.Go, r.OS, r.Arch, r.CPUs, r.CPU, r.LoadBefore, r.LoadAfter)
	fmt.Fprintf(w, "%s\n\n", strings.Join(r.Tools, "; "))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "work\tmedian\tagainst\tits median\tp90/p10\tratio\tmust\taim\tverdict")
	for _, res := range r.Results {
		against, spread, ratio := "\t", "", ""
		if res.LimitName != "" {
			against = res.LimitName + "\t" + quantity(res.Limit, res.Unit)
			spread, ratio = number(res.Spread), number(res.Ratio)
		}
		must, aim := "", ""
		if res.Must != 0 || res.Aim != 0 || res.Verdict != "" {
			sign := map[bool]string{false: "<= ", true: ">= "}[res.More]
			must, aim = sign+number(res.Must), sign+number(res.Aim)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", res.Name, quantity(res.Value, res.Unit), against, spread, ratio, must, aim, res.Verdict)
	}
	_ = t.Flush() // to a terminal or a pipe; there is nothing else to do
	for _, m := range r.Missing {
		fmt.Fprintf(w, "left out: %s\n", m)
	}
}

// short is a result in one line.
func (r result) short() string {
	text := r.Name + ": " + quantity(r.Value, r.Unit)
	if r.LimitName != "" {
		text += fmt.Sprintf(", %s x %s (%s)", number(r.Ratio), r.LimitName, quantity(r.Limit, r.Unit))
	}
	if r.Verdict != "" {
		text += ": " + r.Verdict
	}
	return text
}

func quantity(v float64, unit string) string { return strings.TrimSpace(number(v) + " " + unit) }

// number writes three digits that count, and no exponent.
func number(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// round keeps four digits that count: what follows is noise.
func round(v float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*unit) / unit
}

func (r *report) write(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o600)
}

func readReport(path string) (*report, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("read %s: %w: want what bench wrote", path, err)
	}
	return &r, nil
}

// moved is the part by which a ratio differs before it is worth a word.
const moved = 0.2

// compare says which ratios, or values where there is no yardstick, are not what
// they were.
func (r *report) compare(w io.Writer, old *report) {
	fmt.Fprintf(w, "\nmoved by more than %.0f %% since %s:\n", 100*moved, old.Time.Format(time.RFC3339))
	was := map[string]result{}
	for _, res := range old.Results {
		was[res.Name] = res
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	found := false
	for _, res := range r.Results {
		before, now := was[res.Name].judged(), res.judged()
		if before == 0 || now == 0 || math.Abs(now/before-1) <= moved {
			continue
		}
		found = true
		word := map[bool]string{true: "better", false: "worse"}[now > before == res.More]
		fmt.Fprintf(t, "  %s\t%s -> %s\t%s\n", res.Name, number(before), number(now), word)
	}
	_ = t.Flush()
	if !found {
		fmt.Fprintln(w, "  nothing")
	}
}

// judged is the number that counts.
func (r result) judged() float64 {
	if r.LimitName != "" {
		return r.Ratio
	}
	return r.Value
}
