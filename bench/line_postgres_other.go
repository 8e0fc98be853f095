//go:build !unix

package main

import "context"

// postgres would start a server, which it can do on Unix only.
func (b *bench) postgres(context.Context) error {
	b.progress("  PostgreSQL is measured on Unix: left out")
	return nil
}
