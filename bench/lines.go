package main

import (
	"context"
	"strings"
)

// line is one measurement. It reports its results with bench.compare and bench.record.
type line struct {
	name string // for -only
	run  func(*bench, context.Context) error
}

// lines lists all measurements in their order. A new one is a file line_*.go and an entry
// here.
var lines = []line{
	{"append", (*bench).appends},
	{"append-large", (*bench).appendsLarge},
	{"turn", (*bench).turnOfThree},
	{"concurrent", (*bench).concurrentAppends},
	{"processes", (*bench).processes},
	{"compile", (*bench).compiles},
	{"compile-peers", (*bench).compilesBesidePeers},
	{"compile-after", (*bench).compilesAfter},
	{"memory", (*bench).memory},
	{"budget", (*bench).budgets},
	{"walk", (*bench).walks},
	{"log", (*bench).logs},
	{"size", (*bench).sizesOnDisk},
	{"conversation", (*bench).conversation},
	{"import", (*bench).imports},
	{"fsck", (*bench).fscks},
	{"purge", (*bench).purges},
	{"maintenance", (*bench).maintenance},
	{"decode", (*bench).decodes},
	{"start", (*bench).starts},
	{"proxy", (*bench).proxyRecording},
	{"postgres", (*bench).postgres},
}

func lineNames() string {
	names := make([]string, len(lines))
	for i, l := range lines {
		names[i] = l.name
	}
	return strings.Join(names, ", ")
}
