package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
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
