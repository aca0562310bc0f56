# Two commands matter to a newcomer: `make run` and `make test`. `make help` lists the rest.
GO ?= go
BIN := bin

.PHONY: help build run test check bench faults mutants fuzz

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

build: ## build bin/weir and the three services
	@mkdir -p $(BIN)
	$(GO) build -trimpath -o $(BIN)/ ./cmd/...
	@for s in host router gateway; do $(GO) build -trimpath -o $(BIN)/weir-$$s ./services/$$s || exit 1; done

run: build ## the auction, at http://127.0.0.1:8080/
	$(BIN)/weir dev examples/auction

test: ## all tests, under the race detector; HOUSE=path also runs the app in that folder
	@scripts/browser
	HOUSE=$(HOUSE) $(GO) test -race -timeout 18m ./...
	$(GO) test -timeout 10m ./test/overload

check: ## gofmt, vet, staticcheck and the linters of .golangci.yml
	@test -z "$$(gofmt -l .)" || { echo "gofmt is needed for:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	cd test/compare/centrifuge && $(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.7.0 ./...
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.9.0 run ./...

bench: ## figures, each beside its limit, and centrifuge's
	$(GO) test -run '^$$' -bench . -benchtime 3s ./services/host/bench ./services/gateway/bench
	cd test/compare/centrifuge && $(GO) test -run '^$$' -bench . -benchtime 3s .

faults: ## kill, break and overload everything, for up to an hour; one line for each fault and what was checked
	@scripts/faults

mutants: ## apply each deliberate bug of test/mutants and run the tests that must notice it
	@scripts/mutants

fuzz: ## every fuzz target for a short while
	@for p in $$($(GO) list ./...); do for f in $$($(GO) test -list '^Fuzz' $$p | grep ^Fuzz); do \
		echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime 10s $$p || exit 1; done; done
