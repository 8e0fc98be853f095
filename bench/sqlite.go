package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"
)

// sqlite is a process that runs SQLite and measures itself. It is a program of its own because
// it needs a C compiler.
type sqlite struct {
	version string
	cmd     *exec.Cmd
	in      io.WriteCloser
	ask     *json.Encoder
	answers *json.Decoder
}

// sqliteRequest and sqliteAnswer are the messages of bench/sqlite.
type sqliteRequest struct{ Do, Path, Role, Text string }

type sqliteAnswer struct {
	Took    time.Duration
	Bytes   int64
	Version string
	Error   string
}

// startSQLite builds and starts SQLite. Without a C compiler its measurements are skipped.
func (b *bench) startSQLite(ctx context.Context) error {
	if b.sqlitePkg == "" {
		return nil
	}
	b.progress("building %s", b.sqlitePkg)
	path := filepath.Join(b.dir, "sqlite.exe") // the one name that runs everywhere
	if out, err := exec.CommandContext(ctx, "go", "build", "-C", b.sqlitePkg, "-o", path, ".").CombinedOutput(); err != nil {
		b.skip("SQLite", fmt.Sprintf("build: %v: %.300s", err, out))
		return ctx.Err()
	}
	s := &sqlite{cmd: exec.CommandContext(ctx, path)}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.ask, s.answers = json.NewEncoder(s.in), json.NewDecoder(out)
	a, err := s.do(sqliteRequest{Do: "open", Path: filepath.Join(b.dir, "try.db")})
	if err != nil {
		b.skip("SQLite", err.Error())
		return s.close()
	}
	s.version, b.sqlite = a.Version, s
	return nil
}

// do sends a request and waits for its answer.
func (s *sqlite) do(q sqliteRequest) (a sqliteAnswer, err error) {
	if err := s.ask.Encode(q); err != nil {
		return a, fmt.Errorf("ask sqlite to %s: %w", q.Do, err)
	}
	if err := s.answers.Decode(&a); err != nil {
		return a, fmt.Errorf("ask sqlite to %s: %w", q.Do, err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// close ends the process. It does nothing on nil.
func (s *sqlite) close() error {
	if s == nil {
		return nil
	}
	return errors.Join(s.in.Close(), s.cmd.Wait())
}
