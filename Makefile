VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
VERSION_VARIABLE := github.com/tracing-backend/tracing/pipeline/app.version
LDFLAGS := -s -w -X $(VERSION_VARIABLE)=$(VERSION)
TEST    := go test -shuffle=on -timeout 20m $(TESTFLAGS)

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

run: build ## build and start all-in-one; README.md lists its ports
	@exec bin/tracing all-in-one

build: ## build bin/tracing
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/tracing ./cmd/tracing

ldflags: # print the linker flags of build
	@echo '$(LDFLAGS)'

test: ## run all tests
	$(TEST) ./...

race: ## run all tests with the race detector, the longest ones shortened (needs a C compiler)
	CGO_ENABLED=1 $(TEST) -race -short ./...

lint: ## gofmt, go vet and staticcheck
	@test -z "$$(gofmt -l .)" || { echo "not gofmt-ed:"; gofmt -l .; exit 1; }
	go vet ./...
	go tool staticcheck ./...

generate: ## write the Go code of the files in internal/wire/proto
	go run ./internal/wire/generate

fuzz: ## run every fuzz target for FUZZTIME (20s)
	@./.ci/fuzz $(or $(FUZZTIME),20s)

soak: ## run every fuzz target for 10 minutes, 100,000 simulations, 1000 kills of the program, 2 million operations against the model (hours)
	@./.ci/fuzz 10m
	SIMULATION_SEEDS=100000 go test -run '^TestSimulation$$' -timeout 24h ./test/simulation
	TRACING_KILLS=1000 go test -run TestKill -timeout 6h ./test/e2e/delivery
	TRACING_SEED=random TRACING_SOAK=500 go test -timeout 24h ./exporters/disk

bench: ## measure the hot path and the whole server against pdata, as ratios in one run
	go test -run '^$$' -bench '^Benchmark(Decode|Ratio|Walk)' -benchtime $(or $(BENCHTIME),1s) ./test/bench
	go test -run '^$$' -bench . -benchtime $(or $(BENCHTIME),1s) ./internal/translate/native ./internal/translate/zipkin
	go test -run '^$$' -bench '^BenchmarkServer$$' -benchtime 3x ./test/bench
	go test -run '^$$' -bench '^BenchmarkProtocols$$' -benchtime 3x -timeout 1h ./test/bench
	go test -run '^$$' -bench '^BenchmarkQueue$$' -benchtime 3x -timeout 1h ./test/bench

bench-store: ## measure the span store: in the server against pdata, with queries at the same time, bytes per span, and hostile data
	go test -run '^$$' -bench '^BenchmarkStoreServer$$' -benchtime $(or $(TURNS),3)x -timeout 1h ./test/bench
	go test -run '^$$' -bench '^BenchmarkTogether$$' -benchtime 1x -timeout 1h ./test/bench
	go test -run '^$$' -bench '^BenchmarkSize$$' -benchtime 1x -timeout 1h ./exporters/disk
	go test -run '^$$' -bench '^BenchmarkStore$$' -benchtime $(or $(TURNS),3)x -timeout 1h ./exporters/disk

sampling-plot: ## draw how adaptive sampling follows traffic, in a simulation: SAMPLING_PLOT (adaptive-sampling.svg, with a .csv)
	SAMPLING_PLOT=$(abspath $(or $(SAMPLING_PLOT),adaptive-sampling.svg)) go test -count 1 -run '^TestAdaptivePlot$$' ./extensions/sampling

.PHONY: help run build test race lint generate fuzz soak bench bench-store sampling-plot
