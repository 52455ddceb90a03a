# Gatehouse. "make help" lists what there is.

# The database needs SQLite's full-text search, so this tag is always set.
TAGS := sqlite_fts5
GO   ?= go

# Pinned, so that a check means the same today and tomorrow.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
CLAUDE_CODE := @anthropic-ai/claude-code@2.1.197
OPENAI_NODE := openai@7.55.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

ROUNDS   ?= 100
FUZZTIME ?= 3s

export CGO_ENABLED := 1

# Release builds are static: no library of the system they run on is needed.
# SQLite is C, so each architecture wants its C compiler; Debian's names.
RELEASE_TAGS    := $(TAGS),sqlite_omit_load_extension,netgo,osusergo,timetzdata
RELEASE_LDFLAGS := -s -w -linkmode external -extldflags "-static" -X main.version=$(VERSION)
CC_amd64 ?= x86_64-linux-gnu-gcc
CC_arm64 ?= aarch64-linux-gnu-gcc

.PHONY: help build release FORCE demo test format vet static vulnerabilities race fuzz test-clients test-claude postgres-test crash bench clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

build: ## the program, as bin/gatehouse
	$(GO) build -trimpath -tags $(TAGS) -ldflags "-X main.version=$(VERSION)" -o bin/gatehouse ./cmd/gatehouse

release: dist/gatehouse-linux-amd64 dist/gatehouse-linux-arm64 ## static programs for amd64 and arm64, in dist/
	cd dist && sha256sum gatehouse-linux-* > SHA256SUMS

dist/gatehouse-linux-%: FORCE
	@echo "== $@"
	GOOS=linux GOARCH=$* CC="$(CC_$*)" $(GO) build -trimpath -tags $(RELEASE_TAGS) -ldflags '$(RELEASE_LDFLAGS)' -o $@ ./cmd/gatehouse
	@.ci/static $@ $*

demo: build ## everything on this machine, with a simulated Telegram and Discord
	./bin/gatehouse demo

test: format vet race postgres-test fuzz static vulnerabilities ## all checks

format: ## gofmt finds nothing to change
	@echo "== gofmt"
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then echo "not formatted:"; echo "$$bad"; exit 1; fi

vet: ## go vet
	@echo "== go vet"
	$(GO) vet -tags $(TAGS),browser ./...

race: ## every test, with the race detector, a browser and 20 crash rounds
	@echo "== go test -race"
	$(GO) test -race -timeout 12m -tags $(TAGS),browser ./...

postgres-test: ## the store's and the queue's tests on a throw-away PostgreSQL server
	@echo "== PostgreSQL"
	@GO="$(GO)" TAGS="$(TAGS)" .ci/postgres

fuzz: ## every fuzz target for FUZZTIME each
	@echo "== fuzzing, $(FUZZTIME) each"
	@GO="$(GO)" TAGS="$(TAGS)" .ci/fuzz $(FUZZTIME)

static: ## staticcheck
	@echo "== staticcheck"
	@GO="$(GO)" .ci/tool $(STATICCHECK) -tags $(TAGS),browser ./...

vulnerabilities: ## govulncheck
	@echo "== govulncheck"
	@GO="$(GO)" .ci/tool $(GOVULNCHECK) -tags $(TAGS) ./...

test-clients: ## OpenAI's own clients for Go and Node against /v1; npm fetches the latter
	@echo "== OpenAI's clients"
	@GO="$(GO)" TAGS="$(TAGS)" .ci/clients $(OPENAI_NODE)

test-claude: ## sessions and the runtime against the real Claude Code; CLAUDE=program, else npm fetches it
	@echo "== Claude Code"
	@program="$(CLAUDE)"; dir=; \
	if [ -z "$$program" ]; then \
		dir=$$(mktemp -d) && HOME=$$dir npm install --silent --no-audit --no-fund --ignore-scripts --prefix $$dir $(CLAUDE_CODE) && \
		program=$$(ls $$dir/node_modules/@anthropic-ai/claude-code-*/claude | head -n 1) || exit 1; \
	fi; \
	GATEHOUSE_TEST_CLAUDE="$$program" $(GO) test -count=1 -tags $(TAGS) -run ClaudeCode -v ./core/session ./core/claudecli; ok=$$?; \
	[ -z "$$dir" ] || rm -rf $$dir; exit $$ok

crash: ## the crash, power cut and strace tests alone and longer, both platforms at once, ROUNDS=100
	GATEHOUSE_TEST_ROUNDS=$(ROUNDS) $(GO) test -count=1 -timeout 2h -tags $(TAGS) -run 'Crash|Power|Strace' -v ./cmd/gatehouse

bench: build ## measure on both platforms at once, and write docs/performance.md
	$(GO) build -tags $(TAGS) -o bin/loadgen ./cmd/loadgen
	@cache=$$(mktemp -d); begin=$$(date +%s%N); \
	GOCACHE=$$cache $(GO) build -trimpath -tags $(TAGS) -o $$cache/gatehouse ./cmd/gatehouse && end=$$(date +%s%N); ok=$$?; \
	chmod -R u+w $$cache; rm -rf $$cache; [ $$ok = 0 ] || exit 1; \
	bin/loadgen --program bin/gatehouse --quiet 30s --build $$(( (end - begin) / 1000000 ))ms --report docs/performance.md

clean: ## what the other targets made
	rm -rf bin dist
