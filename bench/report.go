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
	Tools      []string  `json:"tools"` // versions of the programs that are compared
	LoadBefore float64   `json:"load_before"`
	LoadAfter  float64   `json:"load_after"`
	Results    []result  `json:"results"`
	Missing    []string  `json:"missing"` // what could not be measured, and why
}

// result is one row of the table.
type result struct {
	Name           string  `json:"name"`
	Value          float64 `json:"value"` // the median
	Unit           string  `json:"unit"`
	Samples        int     `json:"samples"`
	Baseline       float64 `json:"baseline,omitempty"` // the median of the baseline, in the same unit
	BaselineName   string  `json:"baseline_name,omitempty"`
	Spread         float64 `json:"spread,omitempty"` // p90 / p10 of the baseline
	Ratio          float64 `json:"ratio,omitempty"`  // value / baseline
	Limit          float64 `json:"limit,omitempty"`  // of the ratio if there is a baseline, else of the value
	AtLeast        bool    `json:"at_least,omitempty"`
	HigherIsBetter bool    `json:"higher_is_better,omitempty"`
	Verdict        string  `json:"verdict,omitempty"` // ok, MISSED or unsteady
	Load           float64 `json:"load"`
}

func newReport() report {
	return report{
		Time: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		CPU: cpuName(), CPUs: runtime.NumCPU(), Tools: []string{}, LoadBefore: load(), Missing: []string{},
	}
}

// tools adds the versions of the programs that are compared.
func (r *report) tools(ctx context.Context, b *bench) {
	version := func(name string, args ...string) {
		if out, err := exec.CommandContext(ctx, name, args...).Output(); err == nil {
			first, _, _ := strings.Cut(string(out), "\n")
			r.Tools = append(r.Tools, strings.Trim(first, "* "))
		}
	}
	if b.program != "" {
		version(b.program, "version")
	}
	version("git", "--version")
	version("zstd", "--version")
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
