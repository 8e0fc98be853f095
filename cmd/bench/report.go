package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// report is what bench.json holds.
type report struct {
	Time    time.Time `json:"time"`
	Go      string    `json:"go"`
	OS      string    `json:"os"`
	Arch    string    `json:"arch"`
	CPUs    int       `json:"cpus"`
	Results []result  `json:"results"`
}

// result is one number. Ratio is how many times the yardstick it is, where it
// has one.
type result struct {
	Name      string  `json:"name"`
	Value     float64 `json:"value"`
	Unit      string  `json:"unit"`
	Ratio     float64 `json:"ratio,omitempty"`
	Yardstick string  `json:"yardstick,omitempty"`
}

func newReport() report {
	return report{
		Time: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(),
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
	}
}

func (r *report) add(name string, value float64, unit string) {
	r.Results = append(r.Results, result{Name: name, Value: value, Unit: unit})
}

// against adds a number that is held against an earlier one.
func (r *report) against(yardstick, name string, value float64, unit string) {
	res := result{Name: name, Value: value, Unit: unit}
	if y := r.value(yardstick); y > 0 {
		res.Ratio, res.Yardstick = value/y, yardstick
	}
	r.Results = append(r.Results, res)
}

// value is the number with a name; 0 when there is none.
func (r *report) value(name string) float64 {
	for _, res := range r.Results {
		if res.Name == name {
			return res.Value
		}
	}
	return 0
}

func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "%s %s/%s, %d CPUs, %s\n\n", r.Go, r.OS, r.Arch, r.CPUs, r.Time.Format(time.RFC3339))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, res := range r.Results {
		ratio := ""
		if res.Yardstick != "" {
			ratio = fmt.Sprintf("%.2f x %s", res.Ratio, res.Yardstick)
		}
		fmt.Fprintf(t, "%s\t%.4g %s\t%s\n", res.Name, res.Value, res.Unit, ratio)
	}
	_ = t.Flush() // to a terminal or a pipe; there is nothing else to do
}

func (r *report) write(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o600)
}

// median is the middle of what was measured, in milliseconds.
func median(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)/2]) / float64(time.Millisecond)
}
