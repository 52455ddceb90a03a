# Gatehouse. "make help" lists what there is.

# The database needs SQLite's full-text search, so this tag is always set.
TAGS := sqlite_fts5
GO   ?= go

# Pinned, so that a check means the same today and tomorrow.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
CLAUDE_CODE := @anthropic-ai/claude-code@2.1.197
OPENAI_NODE := openai@7.55.0
MCP_NODE := @modelcontextprotocol/sdk@1.32.2
OPENAI_AI := ai@6.0.326 @ai-sdk/openai@3.0.141 zod@4.6.7
OPENAI_LANGCHAIN := @langchain/openai@1.5.8 @langchain/core@1.4.0
AXE := axe-core@4.14.1
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0
GOTESTSUM   := gotest.tools/gotestsum@v1.13.0

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# The compiler takes more memory and collects garbage less often: a tenth of its time.
COMPILER_GOGC := 400

# The race detector comes with checks of pointers made by hand. Go's own library is tested
# with them where it is written; here they would slow down all that uses reflection.
RACE_GCFLAGS := -gcflags=std=-d=checkptr=0

ROUNDS   ?= 100
FUZZTIME ?= 1s
COMMANDS ?= 100000
SESSIONS ?= 1000000

export CGO_ENABLED := 1

# Release builds are static: no library of the system they run on is needed.
# SQLite is C, so each architecture wants its C compiler; Debian's names.
RELEASE_TAGS    := sqlite_fts5,sqlite_omit_load_extension,netgo,osusergo,timetzdata
RELEASE_LDFLAGS := -s -w -linkmode external -extldflags "-static" -X main.version=$(VERSION)
CC_amd64 ?= x86_64-linux-gnu-gcc
CC_arm64 ?= aarch64-linux-gnu-gcc

.PHONY: help build release release-tags FORCE demo test timed beside format vet static vulnerabilities race counts fuzz fuzz-quick test-clients test-axe pictures first-paint test-claude test-cgroup postgres-test ci-bare crash cluster bench clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

build: ## the program, as bin/gatehouse
	$(GO) build -trimpath -tags $(TAGS) -ldflags "-X main.version=$(VERSION)" -o bin/gatehouse ./cmd/gatehouse

release: dist/gatehouse-linux-amd64 dist/gatehouse-linux-arm64 ## static programs for amd64 and arm64, in dist/
	cd dist && sha256sum gatehouse-linux-* > SHA256SUMS

release-tags: # for .ci/run
	@echo $(RELEASE_TAGS)

dist/gatehouse-linux-% bin/unoptimized-linux-%: FORCE
	@echo "== $@"
	GOGC=$(COMPILER_GOGC) GOOS=linux GOARCH=$* CC="$(CC_$*)" $(GO) build -trimpath $(if $(filter bin/%,$@),-gcflags='all=-N -l') -tags $(RELEASE_TAGS) -ldflags '$(RELEASE_LDFLAGS)' -o $@ ./cmd/gatehouse
	@.ci/static $@ $*

demo: build ## everything on this machine, with a simulated Telegram and Discord
	./bin/gatehouse demo

# The tests mostly wait: the checks that only compute take what they leave.
test: format ## all checks, those without tests beside the tests
	@$(MAKE) --no-print-directory -j2 timed beside

# One run names everything that fails.
timed:
	@failed=; for check in race counts postgres-test; do $(MAKE) --no-print-directory $$check || failed="$$failed $$check"; done; \
	[ -z "$$failed" ] || { echo "FAILED:$$failed"; exit 1; }

beside:
	@failed=; for check in vet fuzz-quick static vulnerabilities; do nice -n 19 $(MAKE) --no-print-directory --output-sync=target $$check || failed="$$failed $$check"; done; \
	[ -z "$$failed" ] || { echo "FAILED:$$failed"; exit 1; }

format: ## gofmt finds nothing to change
	@echo "== gofmt"
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then echo "not formatted:"; echo "$$bad"; exit 1; fi

# A device may run macOS. Whether its side compiles is found in two thirds of the time
# where nothing is optimized.
vet: ## go vet
	@echo "== go vet"
	GOGC=$(COMPILER_GOGC) $(GO) vet -tags $(TAGS),browser ./...
	GOGC=$(COMPILER_GOGC) GOOS=darwin CGO_ENABLED=0 $(GO) build '-gcflags=all=-N -l' ./core/vaultsync/client

# The tests wait more than they compute: three packages, and six tests of each, at a
# time. All is compiled before they begin. "go vet" runs over them by itself. SQLite
# is compiled in a third of the time.
race: export CGO_CFLAGS := -O1
race: ## every test, with the race detector, a browser and 20 crash rounds
	@echo "== go test -race"
	@GOGC=$(COMPILER_GOGC) $(GO) list -test -deps -export -race $(RACE_GCFLAGS) -tags $(TAGS),browser ./... >/dev/null
	@GO="$(GO)" TAGS="$(TAGS)" .ci/race $(GOTESTSUM) -race $(RACE_GCFLAGS) -vet=off -timeout 30m -p 3 -parallel 6 -tags $(TAGS),browser

counts: ## the tests of what is allocated and held, every escape, and what computes much, without the race detector
	@echo "== allocations and memory"
	@GO="$(GO)" TAGS="$(TAGS)" .ci/counts

test-cgroup: ## the sandbox's control groups in a kernel of their own (User Mode Linux)
	@echo "== control groups"
	@GO="$(GO)" TAGS="$(TAGS)" .ci/cgroup

postgres-test: ## tests of what owns tables on a throw-away PostgreSQL server
	@echo "== PostgreSQL"
	@GO="$(GO)" TAGS="$(TAGS)" .ci/postgres

fuzz: export CGO_CFLAGS := -O1
fuzz: ## every fuzz target for FUZZTIME each, guided by coverage
	@echo "== fuzzing, $(FUZZTIME) each"
	@GO="$(GO)" TAGS="$(TAGS)" .ci/fuzz $(FUZZTIME)
	@echo "== $(COMMANDS) allowed commands in a real bash"
	@GATEHOUSE_TEST_DIFFERENTIAL=$(COMMANDS) $(GO) test -tags $(TAGS) -timeout 60m -run '^TestNothingRunsThatTheReaderDidNotList$$' -v ./core/permission | grep -v '^==='

fuzz-quick: FUZZTIME := $(if $(filter file,$(origin FUZZTIME)),300ms,$(FUZZTIME))
fuzz-quick: ## every fuzz target for FUZZTIME each, on mutations of its seeds
	@echo "== fuzzing without guidance, $(FUZZTIME) each"
	@GO="$(GO)" TAGS="$(TAGS)" .ci/fuzz $(FUZZTIME) quick

static: ## staticcheck
	@echo "== staticcheck"
	@GO="$(GO)" TAGS="$(TAGS)" .ci/tool $(STATICCHECK) -tags $(TAGS),browser ./...

vulnerabilities: ## govulncheck
	@echo "== govulncheck"
	@GO="$(GO)" TAGS="$(TAGS)" .ci/tool $(GOVULNCHECK) -tags $(TAGS) ./...

test-clients: ## OpenAI's own clients for Go and Node, the Vercel AI SDK and LangChain.js against /v1, and MCP's for Node against /mcp; npm fetches those for Node
	@echo "== OpenAI's clients and MCP's"
	@GO="$(GO)" TAGS="$(TAGS)" .ci/clients "$(OPENAI_NODE)" "$(MCP_NODE)" "$(OPENAI_AI)" "$(OPENAI_LANGCHAIN)"

test-axe: ## the pages of the panel and the phones under axe-core, which npm fetches
	@echo "== axe-core"
	@dir=$$(mktemp -d); \
	if .ci/npm $$dir $(AXE); then \
		GATEHOUSE_TEST_AXE=$$dir/node_modules/axe-core/axe.min.js $(GO) test -count=1 -vet=off -tags $(TAGS),browser -run TestAxe ./admin ./cmd/gatehouse/phones; ok=$$?; \
	elif [ "$$CI" = true ]; then echo "FAILED: axe-core cannot be fetched"; ok=1; \
	else echo "SKIPPED: axe-core cannot be fetched"; ok=0; fi; \
	rm -rf $$dir; exit $$ok

pictures: ## the pictures of docs/admin.md, by a browser
	@rm -f docs/admin/*.png
	GATEHOUSE_TEST_PICTURES=$(CURDIR)/docs/admin $(GO) test -count=1 -timeout 30m -tags $(TAGS),browser -run TestPicturesOfEveryPage ./admin
	@du -sh docs/admin

first-paint: ## the panel's first paint with SESSIONS=1000000 conversations
	GATEHOUSE_TEST_SESSIONS=$(SESSIONS) $(GO) test -count=1 -timeout 60m -tags $(TAGS),browser -run TestFirstPaint -v ./admin

test-claude: ## sessions and the runtime against the real Claude Code; CLAUDE=program, else npm fetches it
	@echo "== Claude Code"
	@program="$(CLAUDE)"; dir=; \
	if [ -z "$$program" ]; then \
		dir=$$(mktemp -d) && .ci/npm $$dir $(CLAUDE_CODE) && \
		program=$$(ls $$dir/node_modules/@anthropic-ai/claude-code-*/claude | head -n 1) || exit 1; \
	fi; \
	GATEHOUSE_TEST_CLAUDE="$$program" $(GO) test -count=1 -tags $(TAGS) -run ClaudeCode -v ./core/session ./core/claudecli ./cmd/gatehouse; ok=$$?; \
	[ -z "$$dir" ] || rm -rf $$dir; exit $$ok

ci-bare: ## .ci/run in a bare Debian 12 (debootstrap), as root; half an hour
	@GO="$(GO)" .ci/bare

crash: ## the crash, power cut and strace tests alone and longer, both platforms at once, ROUNDS=100
	GATEHOUSE_TEST_ROUNDS=$(ROUNDS) $(GO) test -count=1 -timeout 2h -tags $(TAGS) -run 'Crash|Power|Strace' -v ./cmd/gatehouse

cluster: ## every fault around two gateways and two database servers, ROUNDS=10 times each
	GATEHOUSE_TEST_ROUNDS=$(if $(filter file,$(origin ROUNDS)),10,$(ROUNDS)) .ci/postgres -- $(GO) test -count=1 -timeout 2h -tags $(TAGS) -run WhateverFailsAroundACluster -v ./cmd/gatehouse

bench: ## measure on both platforms at once, and write docs/performance.md
	$(GO) build -tags $(TAGS) -o bin/loadgen ./cmd/loadgen
	$(GO) build -trimpath -tags $(TAGS) -ldflags "-s -w -X main.version=$(VERSION)" -o bin/gatehouse-stripped ./cmd/gatehouse
	@cache=$$(mktemp -d); begin=$$(date +%s%N); \
	GOCACHE=$$cache $(GO) build -trimpath -tags $(TAGS) -o $$cache/gatehouse ./cmd/gatehouse && end=$$(date +%s%N); ok=$$?; \
	chmod -R u+w $$cache; rm -rf $$cache; [ $$ok = 0 ] || exit 1; \
	bin/loadgen --program bin/gatehouse-stripped --quiet 30s --build $$(( (end - begin) / 1000000 ))ms --report docs/performance.md

clean: ## what the other targets made
	rm -rf bin dist
