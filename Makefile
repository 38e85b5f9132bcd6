# make test    everything that must hold, under 15 minutes on two cores
# make lint    formatting, vet, staticcheck; govulncheck where its database can be reached
# make bench   Felix beside its references, in one run (docs/benchmarks.md)
# make soak    the long campaigns; FUZZTIME, COUNT, SOAK and KILLS set their size

GO        ?= go
FUZZTIME  ?= 2m
COUNT     ?= 20
SOAK      ?= 100
KILLS     ?= 200
TESTFLAGS ?=

.PHONY: all build test test-go lint bench soak clean

all: build

build:
	$(GO) build -trimpath -o bin/felix ./cmd/felix

test: lint test-go

# One run with the race detector and shuffled order. The tests that need the
# published Python client install it themselves (conformance/python).
test-go:
	$(GO) test $(TESTFLAGS) -race -shuffle=on -timeout 14m ./...
	$(GO) test $(TESTFLAGS) -run 'Alloc' -timeout 5m ./wire/... ./storage/... ./broker/... ./internal/node/... ./client/...

lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "not formatted:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	@timeout 120 $(GO) tool govulncheck ./... || echo "govulncheck: not decided here (its database may be out of reach)"

bench:
	$(GO) run ./bench/compare

# Every fuzz target of the tree for FUZZTIME each, the campaigns of the log SOAK
# times their size, KILLS kills, then the tests COUNT times.
soak:
	./bench/soak.sh $(FUZZTIME) $(COUNT) $(SOAK) $(KILLS)

clean:
	rm -rf bin
