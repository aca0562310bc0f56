# Two commands matter to a newcomer: `make run` and `make test`. `make help` lists the rest.
GO ?= go
BIN := bin
RACE_PACKAGES := ./pkg/... ./services/... ./cmd/... ./test/...

.PHONY: help build run test check

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

build: ## build bin/weir
	@mkdir -p $(BIN)
	$(GO) build -trimpath -o $(BIN)/ ./cmd/...

test: ## all tests, under the race detector
	$(GO) test -race -timeout 15m $(RACE_PACKAGES)

check: ## gofmt, vet and linters
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	$(GO) vet ./...
