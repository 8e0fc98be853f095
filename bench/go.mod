// Bench measures tract beside git, SQLite and plain files. It is a module of its own so
// that programs that use tract do not depend on SQLite.
module github.com/tract-vcs/tract/bench

go 1.25.0

require (
	github.com/jackc/pgx/v5 v5.12.0
	github.com/mattn/go-sqlite3 v1.14.53
	github.com/tract-vcs/tract v0.0.0
	go.etcd.io/bbolt v1.5.0
)

require (
	github.com/andybalholm/brotli v1.3.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/klauspost/cpuid/v2 v2.0.12 // indirect
	github.com/pelletier/go-toml/v2 v2.4.3 // indirect
	github.com/zeebo/blake3 v0.2.4 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)

replace github.com/tract-vcs/tract => ../
