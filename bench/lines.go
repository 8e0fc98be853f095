package main

import (
	"context"
	"strings"
)

// line is one thing that is measured. It says what it found with bench.hold and
// bench.tell.
type line struct {
	name string // that -only looks at
	run  func(*bench, context.Context) error
}

// lines is all that is measured, in this order. What is new gets a file line_*.go
// and an entry here.
var lines = []line{
	{"append", (*bench).appends},
	{"append-large", (*bench).appendsLarge},
	{"generate", (*bench).generates},
	{"crowd", (*bench).crowds},
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
	{"decode", (*bench).decodes},
	{"start", (*bench).starts},
}

func lineNames() string {
	names := make([]string, len(lines))
	for i, l := range lines {
		names[i] = l.name
	}
	return strings.Join(names, ", ")
}
