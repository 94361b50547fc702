# Every target is one plain command: without make, type it.

GO       ?= go
FUZZTIME ?= 30s

.PHONY: all build test check acceptance interop browser bench fuzz cross fmt clean

all: build

# Static binaries. Commit and Go version come from the build itself.
build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/...

# Every test this machine can run; ends by naming what was left out.
test:
	$(GO) run ./test/all

# What a change must pass before it is proposed.
check:
	$(GO) run ./test/all -stages fmt,tidy,vet,lint,test

# The scripts, in process and against the built binary.
acceptance:
	$(GO) test -count=1 ./test/acceptance/...

# The official TypeScript client and acpx against the built binary.
interop:
	$(GO) run ./test/all -stages interop

# The web console in headless Chromium, against the built binary.
browser:
	$(GO) run ./test/all -stages console,browser

# The figures of docs/performance.md, measured on this machine.
bench:
	$(GO) run ./test/bench

# Every fuzz target, FUZZTIME each.
fuzz:
	$(GO) run ./test/all -stages fuzz -fuzztime $(FUZZTIME) -fuzzmax 24h

# Compiles code and tests for the other systems.
cross:
	$(GO) run ./test/all -stages cross

fmt:
	@if command -v gofumpt >/dev/null; then gofumpt -w adapters bootstrap cmd core test; else gofmt -w adapters bootstrap cmd core test; fi

clean:
	rm -rf bin dist coverage test/interop/out test/console/out
