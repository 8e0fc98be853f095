// SQLite is what the store is measured against, and no part of it. It is a module
// of its own so that whoever uses tract never sees it.
module github.com/tract-vcs/tract/cmd/bench/sqlite

go 1.25.0

require github.com/mattn/go-sqlite3 v1.14.53
