VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/tracing-backend/tracing/pipeline.version=$(VERSION)
TEST    := go test -shuffle=on $(TESTFLAGS)

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

run: build ## build and start all-in-one: OTLP on 4317 and 4318, query on 16686, admin on 14269
	@exec bin/tracing all-in-one

build: ## build bin/tracing
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/tracing ./cmd/tracing

test: ## run all tests
	$(TEST) ./...

race: ## run all tests with the race detector (needs a C compiler)
	CGO_ENABLED=1 $(TEST) -race ./...

lint: ## gofmt, go vet and staticcheck
	@test -z "$$(gofmt -l .)" || { echo "not gofmt-ed:"; gofmt -l .; exit 1; }
	go vet ./...
	go tool staticcheck ./...

fuzz: ## run every fuzz target for FUZZTIME (20s)
	@./.ci/fuzz $(or $(FUZZTIME),20s)

soak: ## run every fuzz target for 10 minutes
	@./.ci/fuzz 10m

bench: ## measure the hot path and the whole server against pdata, as ratios in one run
	go test -run '^$$' -bench . -benchtime $(or $(BENCHTIME),1s) ./internal/bench
	go test -run '^$$' -bench BenchmarkServer -benchtime 3x .

.PHONY: help run build test race lint fuzz soak bench
