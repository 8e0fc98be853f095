// Sqlite does with SQLite what a store does, and says how long it took. It is
// started by bench, reads requests as lines of JSON and answers each with one.
// It needs a C compiler: without one the first answer is an error.
package main

import (
	"bufio"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver
)

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "sqlite: %v\n", err)
		os.Exit(1)
	}
}

// request is one thing to do: open a database at Path; insert Text as a message,
// durably; load the messages of the JSON lines at Path; read all messages; pack
// the file.
type request struct{ Do, Path, Role, Text string }

// answer is what came of it.
type answer struct {
	Took    time.Duration
	Bytes   int64  // of words that were read; of the file when it was packed
	Version string // of SQLite, when it was opened
	Error   string
}

// serve answers requests until there are no more.
func serve(in io.Reader, out io.Writer) error {
	var db database
	answers := json.NewEncoder(out)
	requests := json.NewDecoder(in)
	for {
		var q request
		if err := requests.Decode(&q); err == io.EOF {
			return db.shut()
		} else if err != nil {
			return errors.Join(fmt.Errorf("read a request: %w", err), db.shut())
		}
		a, err := db.answer(q)
		if err != nil {
			a.Error = fmt.Sprintf("%s: %v", q.Do, err)
		}
		if err := answers.Encode(a); err != nil {
			return errors.Join(err, db.shut())
		}
	}
}

// database is the one that is open.
type database struct {
	*sql.DB
	path   string
	insert *sql.Stmt
	last   []byte // id of the newest message
}

// answer does what is asked.
func (d *database) answer(q request) (a answer, err error) {
	start := time.Now()
	switch q.Do {
	case "open":
		a.Version, err = d.open(q.Path)
	case "insert":
		err = d.add(d.insert, randomID(), q.Role, time.Now().UnixMilli(), q.Text)
	case "load":
		err = d.load(q.Path)
	case "read":
		a.Bytes, err = d.read()
	case "pack":
		a.Bytes, err = d.pack()
	default:
		err = errors.New("want open, insert, load, read or pack")
	}
	a.Took = time.Since(start)
	return a, err
}

// open makes a database that keeps what it acknowledges.
func (d *database) open(path string) (version string, err error) {
	if err := d.shut(); err != nil {
		return "", err
	}
	db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL&_synchronous=FULL")
	if err != nil {
		return "", err
	}
	db.SetMaxOpenConns(1)
	*d = database{DB: db, path: path}
	if _, err := db.Exec(`CREATE TABLE IF NOT EXISTS messages(id BLOB PRIMARY KEY, parent BLOB, role TEXT NOT NULL, time INTEGER NOT NULL, text TEXT NOT NULL)`); err != nil {
		return "", err
	}
	if d.insert, err = db.Prepare(`INSERT INTO messages VALUES(?, ?, ?, ?, ?)`); err != nil {
		return "", err
	}
	return version, db.QueryRow(`SELECT sqlite_version()`).Scan(&version)
}

func (d *database) shut() error {
	if d.DB == nil {
		return nil
	}
	db := d.DB
	d.DB = nil
	return db.Close()
}

// add puts one message after the newest.
func (d *database) add(insert *sql.Stmt, id []byte, role string, ms int64, text string) error {
	if d.DB == nil {
		return errors.New("no database is open")
	}
	_, err := insert.Exec(id, d.last, role, ms, text)
	d.last = id
	return err
}

func randomID() []byte {
	id := make([]byte, 32)
	_, _ = rand.Read(id) // never fails
	return id
}

// load puts all messages of a file in, in one transaction.
func (d *database) load(path string) error {
	if d.DB == nil {
		return errors.New("no database is open")
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
	tx, err := d.Begin()
	if err != nil {
		return err
	}
	if err := d.loadInto(tx, json.NewDecoder(bufio.NewReaderSize(f, 1<<20))); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (d *database) loadInto(tx *sql.Tx, lines *json.Decoder) error {
	insert := tx.Stmt(d.insert)
	for {
		var m struct {
			ID      string
			Time    int64
			Role    string
			Content string
		}
		if err := lines.Decode(&m); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		id, err := hex.DecodeString(m.ID)
		if err != nil {
			return err
		}
		if err := d.add(insert, id, m.Role, m.Time, m.Content); err != nil {
			return err
		}
	}
}

// read gets all messages into memory, in their order.
func (d *database) read() (bytes int64, err error) {
	if d.DB == nil {
		return 0, errors.New("no database is open")
	}
	rows, err := d.Query(`SELECT role, text FROM messages ORDER BY rowid`)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }() // nothing was written
	type message struct{ role, text string }
	var all []message
	for rows.Next() {
		var m message
		if err := rows.Scan(&m.role, &m.text); err != nil {
			return 0, err
		}
		all = append(all, m)
	}
	for _, m := range all {
		bytes += int64(len(m.text))
	}
	return bytes, rows.Err()
}

// pack makes the file as small as it gets and gives its size.
func (d *database) pack() (bytes int64, err error) {
	if d.DB == nil {
		return 0, errors.New("no database is open")
	}
	for _, do := range []string{`VACUUM`, `PRAGMA wal_checkpoint(TRUNCATE)`} {
		if _, err := d.Exec(do); err != nil {
			return 0, err
		}
	}
	info, err := os.Stat(d.path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
