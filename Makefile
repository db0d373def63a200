# VERSION_VARIABLE is the variable that the linker sets to the version.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
VERSION_VARIABLE := github.com/tracing-backend/tracing/pipeline/app.version
LDFLAGS := -s -w -X $(VERSION_VARIABLE)=$(VERSION)
# The program and the tests are compiled in the same way, so that each package is compiled once.
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath
# make lint runs go vet. A random order would keep Go from using the results of tests again.
# Many tests mostly wait, so that one more package than cores is tested at the same time.
TEST := go test $(shell cores=$$(nproc 2>/dev/null) && echo -p $$((cores + 1))) -vet=off -timeout 20m $(if $(filter true,$(CI)),-shuffle=on) $(TESTFLAGS)
TEST_PROGRAM := $(abspath bin/test/tracing)
# Tests create much garbage in small heaps, and need a quarter less CPU time in larger ones. Package harness removes GOGC from the
# environment of the programs that it starts.
TEST_ENV := GOGC=400 TEST_PROGRAM=$(TEST_PROGRAM)
STAGE := .ci/stage
BENCH := go test -run '^$$' -timeout 1h
# with-node runs a command that needs Node.js and the packages of ui, or says that something is left out.
with-node = if ui/test/install; then $(1); elif [ "$$CI" = true ]; then exit 1; else echo "$(2)"; fi
IMAGE_ARCH = $(shell go env GOARCH)
NODE_CLIENTS := test/e2e/testdata/node
EXAMPLES := examples/apps

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' Makefile

run: build ## build and start all-in-one; README.md lists its ports
	@exec bin/tracing all-in-one

build: ui-if-needed ## build bin/tracing, with the web UI
	go build -ldflags '$(LDFLAGS)' -o bin/tracing ./cmd/tracing

ldflags: # print the linker flags of build
	@echo '$(LDFLAGS)'

ui: ## build the web UI, which the program embeds
	@ui/build/run

ui-if-needed: # build the web UI if sources have changed
	@ui/build/run --if-needed

ui-test: ## run the unit tests of the web UI, if Node.js is installed
	@$(call with-node,npm --prefix ui run --silent test,the unit tests of the web UI are skipped)

test-browser: build ## test the pages in Chromium and Firefox against bin/tracing, if Node.js and the browsers are installed
	@$(call with-node,npm --prefix ui run --silent test-browser,the tests in a browser are skipped)

test-ui: # run the tests of the web UI that have not passed with the current files, if Node.js is installed
	@$(call with-node,$(UI_TESTS),the tests of the web UI are skipped)

UI_TESTS = $(STAGE) 'unit tests of the web UI' ui/test/unless-passed ui-test ui extensions pipeline/tracestore/callpath/testdata \
	test/e2e/query/testdata -- npm --prefix ui run --silent test && \
	$(STAGE) 'tests in a browser' ui/test/unless-passed test-browser ui bin/tracing -- \
	env SHORT=$(if $(filter true,$(CI)),,1) npm --prefix ui run --silent test-browser

ui-screenshots: build ## draw every page in Chromium, light and dark, large and small, into SCREENSHOTS (ui-screenshots)
	@ui/test/install && cd ui && SCREENSHOTS=$(abspath $(or $(SCREENSHOTS),ui-screenshots)) npm run --silent test-browser

ui-images: build ## draw the pictures of README and docs in Chromium, into docs/images
	@ui/test/install && cd ui && IMAGES=$(abspath docs/images) npm run --silent test-browser

bench-ui: build ## measure the pages in Chromium: times, frames, memory and sizes beside their budgets
	@ui/test/install && cd ui && BENCH=1 npm run --silent test-browser

test: build node-clients ## run the tests; long ones briefly or not at all: make test-long test-tools test-browser test-engines
	@$(MAKE) --no-print-directory -j 2 test-go test-ui

# A recipe sets packages first: the exit status of a command among arguments is lost.
test-go: test-program # run the tests in Go, the long ones briefly or not at all
	@packages=$$(.ci/packages short) && $(STAGE) 'tests in Go' env $(TEST_ENV) $(TEST) -short $$packages

test-long: build node-clients test-program ## run in full what make test shortens and what make race leaves out
	@packages=$$(.ci/packages long) && $(STAGE) 'long tests' env $(TEST_ENV) $(TEST) $$packages

test-tools: build test-program ## run the tests of the module tools: images, packages, the Helm chart, releases
	@cd tools && ../$(STAGE) 'tests of tools' env TEST_PROGRAM=$(TEST_PROGRAM) $(TEST) ./...

# Go repeats tests if a file that they use has another time. Tests use this copy, which gets another
# time only if the program has changed.
test-program: build
	@mkdir -p bin/test && { cmp -s bin/tracing $(TEST_PROGRAM) || { cp bin/tracing bin/test/new && mv bin/test/new $(TEST_PROGRAM); }; }

test-examples: ## install the packages of examples/apps for the languages that are installed, and test the programs
	@if command -v npm >/dev/null; then cd $(EXAMPLES)/node && npm ci --ignore-scripts --prefer-offline; \
		else echo "npm is not installed; the example for Node.js is skipped"; fi
	@if python3 -c 'import venv, ensurepip' 2>/dev/null; then \
		cd $(EXAMPLES)/python && python3 -m venv .venv && .venv/bin/pip install -q -r requirements.txt; \
		else echo "Python with venv is not installed; the example for Python is skipped"; fi
	@if command -v mvn >/dev/null; then cd $(EXAMPLES)/java && mvn -q -B compile dependency:copy-dependencies; \
		else echo "Maven is not installed; the example for Java is skipped"; fi
	$(TEST) -v ./test/e2e/examples

node-clients: $(NODE_CLIENTS)/node_modules/.package-lock.json ## install the Node.js client libraries for the tests

$(NODE_CLIENTS)/node_modules/.package-lock.json: $(NODE_CLIENTS)/package-lock.json
	@if command -v npm >/dev/null; then \
		cd $(NODE_CLIENTS) && npm ci --ignore-scripts --prefer-offline; \
	elif [ "$$CI" = true ]; then \
		echo "npm is not installed; the tests of the Node.js clients need it" >&2; exit 1; \
	else \
		echo "npm is not installed; the tests of the Node.js clients are skipped"; \
	fi

test-collector: ## compare the defaults of the OpenTelemetry Collector, which it downloads, with the file that tests use
	cd test/collector && $(TEST) ./...

test-proxy: test-program ## log in through oauth2-proxy, which it downloads, as docs/login.md describes
	cd test/proxy && TEST_PROGRAM=$(TEST_PROGRAM) $(TEST) ./...

test-engines: engines ## run the tests on real ClickHouse engines and Kafka brokers, which it downloads
	TRACING_ENGINES=1 go test -count 1 -timeout 90m $(TESTFLAGS) ./test/engines/... ./test/e2e/monitoring

test-engines-smoke: engines ## run the short ones of test-engines (at most 4 minutes on two idle cores)
	@$(STAGE) 'short tests on engines' env TRACING_ENGINES=1 go test -vet=off -count 1 -short -timeout 15m $(TESTFLAGS) ./test/engines/... ./test/e2e/monitoring

engines: # download the ClickHouse engines and the Kafka brokers; without them, their tests are skipped
	@for e in clickhouse/engine clickhouse/cluster kafka/broker; do go run ./test/engines/$$e/install || \
		{ [ "$$CI" != true ] || exit 1; echo "the tests that need test/engines/$$e are skipped"; }; done

image: image-program ## build the container image tracing:VERSION with docker, podman or buildah
	@deploy/docker/build Dockerfile tracing:$(VERSION) $(IMAGE_ARCH)

image-debug: ui-if-needed ## build the image tracing-debug:VERSION, in which the program runs under a debugger
	GOOS=linux GOARCH=$(IMAGE_ARCH) go build -gcflags 'github.com/tracing-backend/tracing/...=-N -l' -ldflags '-X $(VERSION_VARIABLE)=$(VERSION)' \
		-o bin/linux-$(IMAGE_ARCH)/tracing-debug ./cmd/tracing
	cd tools && GOOS=linux GOARCH=$(IMAGE_ARCH) go build -o ../bin/linux-$(IMAGE_ARCH)/dlv github.com/go-delve/delve/cmd/dlv
	@deploy/docker/build Dockerfile.debug tracing-debug:$(VERSION) $(IMAGE_ARCH)

image-oci: ui-if-needed ## write the image for amd64 and arm64 to bin/tracing-VERSION-oci.tar, without a container engine
	@for arch in amd64 arm64; do $(MAKE) --no-print-directory image-program IMAGE_ARCH=$$arch || exit 1; done
	cd tools && go run ./image -dir .. -version $(VERSION) -out ../bin/tracing-$(VERSION)-oci.tar \
		-program amd64=../bin/linux-amd64/tracing -program arm64=../bin/linux-arm64/tracing

image-program: ui-if-needed # build the program for the images of IMAGE_ARCH
	GOOS=linux GOARCH=$(IMAGE_ARCH) go build -ldflags '$(LDFLAGS)' -o bin/linux-$(IMAGE_ARCH)/tracing ./cmd/tracing

test-deploy: ## show each way of deployment once, from a fresh copy: WAYS (all); CLEAN=1 with empty Go caches, FULL=1 with make test
	@deploy/test $(WAYS)

# At its end, a program with the race detector waits for further races, by default for a second.
race: build test-program ## run the tests that can race with the race detector, without long ones (needs a C compiler)
	@packages=$$(.ci/packages race) && $(STAGE) 'tests with the race detector' env CGO_ENABLED=1 GORACE=atexit_sleep_ms=50 $(TEST_ENV) \
		$(TEST) -race -short $$packages ./test/engines/clickhouse/chserver

lint: ## run gofmt, go vet, staticcheck, and the type check of the web UI
	@$(STAGE) lint $(MAKE) --no-print-directory lint-all

# With a larger heap, staticcheck needs a fifth less CPU time.
LARGE_HEAP := GOGC=400 GOMEMLIMIT=4GiB

lint-all:
	@$(call with-node,npm --prefix ui run --silent check,the types of the web UI are not checked)
	@test -z "$$(gofmt -l .)" || { echo "not gofmt-ed:"; gofmt -l .; exit 1; }
	go vet ./...
	$(LARGE_HEAP) go tool staticcheck ./...
	cd tools && go vet ./...
	staticcheck=$$(go tool -n staticcheck) && cd tools && $(LARGE_HEAP) $$staticcheck ./...

docs: ## write the documentation as a site of static files: DOCS (dist/docs)
	go run ./internal/docsite/build -out '$(abspath $(or $(DOCS),dist/docs))'

generate: ## generate the Go code of the files in internal/wire/proto
	go run ./internal/wire/generate

fuzz: ## run every fuzz target for FUZZTIME (20s)
	@$(STAGE) fuzzing .ci/fuzz $(or $(FUZZTIME),20s)

fuzz-changed: ## fuzz the packages that have changed since the commit BASE (where the branch left origin/main, or the last commit) for FUZZSECONDS (60) in all
	@$(STAGE) 'fuzzing of changed packages' env GOGC=400 BASE=$(BASE) .ci/fuzz --changed $(or $(FUZZSECONDS),60)

soak: ## run every fuzz target for 10 minutes, and the tests with random input with random seeds and many rounds (hours)
	@./.ci/fuzz 10m
	TRACING_SEED=random TRACING_SOAK=500 go test -run '^TestSimulation$$' -timeout 24h ./test/simulation
	TRACING_SEED=random TRACING_SOAK=200 go test -run '^Test(Kill|DamagedQueue|DamagedQueueFile|DamagedStore|Outage)$$' -timeout 24h ./test/e2e/delivery
	TRACING_SEED=random TRACING_SOAK=1000 go test -timeout 24h ./exporters/disk
	TRACING_SEED=random TRACING_SOAK=100 go test -run 'OfTheQueue$$' -timeout 24h ./pipeline/storage/spool
	TRACING_SEED=random TRACING_SOAK=1000 go test -run 'Balanced$$' -timeout 24h ./processors/tail_sampling ./pipeline/internal/host
	TRACING_SEED=random go test -count 200 -run '^Test(Store|Suite|Queries)' -timeout 24h ./exporters/disk ./exporters/memory ./internal/multistore
	TRACING_SEED=random go test -count 200 -timeout 24h ./exporters/disk/internal/aggregate ./exporters/disk/internal/find ./pipeline/tracestore/storequery
	TRACING_SOAK=20 go test -run '^TestExplain' -timeout 24h ./extensions/query
	TRACING_SEED=random TRACING_SOAK=2 go test -count 50 -run '^Test(Remote|Random|Dependencies)' -timeout 24h ./test/e2e/query

bench: ## measure decoding and whole servers, as ratios to pdata
	$(BENCH) -bench '^Benchmark(Decode|Ratio)$$' -benchtime $(or $(BENCHTIME),1s) ./test/bench
	$(BENCH) -bench . -benchtime $(or $(BENCHTIME),1s) ./internal/translate/native ./internal/translate/zipkin
	$(BENCH) -bench '^Benchmark(Server|Protocols|Queue|Batch)$$' -benchtime 3x ./test/bench

bench-once: build test-program # run each benchmark once, with less data, so that none breaks unnoticed; those with millions of spans, of whole servers and of engines are left out
	@packages=$$(.ci/packages benched) && $(STAGE) 'benchmarks, once' \
		go test -vet=off -short -run '^$$' -bench . -skip 'WithDeletion$$|ManyServices$$' -benchtime 1x -timeout 20m $$packages
	@$(STAGE) 'benchmarks of servers, once' env TEST_PROGRAM=$(TEST_PROGRAM) \
		go test -vet=off -short -run '^$$' -bench '^Benchmark(Decode|Ratio|Queue|Batch)$$' -benchtime 1x -timeout 20m ./test/bench
	@$(STAGE) 'benchmarks of the web UI, once' env BENCH=1 RUNS=1 LIVE_SECONDS=30 npm --prefix ui run --silent test-browser

bench-store: ## measure the span store: whole servers, queries under load, bytes per span, facets of SPANS (5000000), and hostile data
	$(BENCH) -bench '^BenchmarkStoreServer$$' -benchtime $(or $(TURNS),3)x ./test/bench
	$(BENCH) -bench '^Benchmark(Together|Heavy)$$' -benchtime 1x ./test/bench
	$(BENCH) -bench '^BenchmarkSize$$' -benchtime 1x ./exporters/disk
	$(BENCH) -bench '^BenchmarkPathProfiles$$' -benchtime $(or $(TURNS),3)x ./exporters/disk
	DISK_BENCH_SPANS=$(or $(SPANS),5000000) $(BENCH) -bench '^BenchmarkFacets$$' -benchtime 20x ./exporters/disk
	$(BENCH) -bench '^BenchmarkStore$$' -benchtime $(or $(TURNS),3)x ./exporters/disk

clickhouse-cluster: ## start four ClickHouse 18.16 servers, two collectors and two query services on this machine, with traffic
	go build -o bin/tracing-legacy ./test/engines/clickhouse/legacy/tracing
	go run ./test/engines/clickhouse/demo -program bin/tracing-legacy

bench-clickhouse: ## measure the ClickHouse store beside the schemas of Jaeger and the OpenTelemetry Collector: SPANS (1000000)
	TRACING_ENGINES=1 SPANS=$(or $(SPANS),1000000) go test -run '^$$' -timeout 3h -bench '^BenchmarkSchemas$$' -benchtime 1x ./test/engines/clickhouse/compare

bench-clickhouse-pages: engines ## measure the pages of the web UI over ClickHouse beside the disk store: SPANS (2000000), TURNS (3), PAGES (all), PROFILE=1 for statements
	TRACING_ENGINES=1 SPANS=$(or $(SPANS),2000000) go test -run '^$$' -timeout 3h -bench '^BenchmarkPages$$' -benchtime 1x ./test/engines/clickhouse/pages

compare-tempo: build ## ask a Grafana Tempo program (TEMPO=path) and this one the same questions over the same spans: SPANS (50000) or CAPTURED=folder, QUERIES=file, ONLY=text, TIMES (3)
	go run ./test/compare -tempo '$(TEMPO)' -tracing bin/tracing -spans $(or $(SPANS),50000) -captured '$(CAPTURED)' \
	  -queries $(or $(QUERIES),test/compare/queries.txt) -only '$(ONLY)' -times $(or $(TIMES),3)

bench-kafka: engines ## send spans through three Kafka brokers for DURATION (10m) at RATE spans/s (the highest sustained rate): lag, CPU, memory
	TRACING_ENGINES=1 DURATION=$(or $(DURATION),10m) RATE=$(RATE) go test -run '^$$' -timeout 24h -bench '^BenchmarkEndurance$$' -benchtime 1x ./test/engines/kafka/delivery

release: ## make the release VERSION=x.y.z in dist/x.y.z: programs, packages, images, licenses, checksums
	cd tools && go run ./release -version '$(VERSION)' -out '$(abspath dist/$(VERSION))'

release-check: ## make the release VERSION=x.y.z twice, in different folders, and compare the checksums (half an hour)
	@tools/release/reproduce '$(VERSION)'

sampling-plot: ## draw how adaptive sampling follows traffic, in a simulation: SAMPLING_PLOT (adaptive-sampling.svg, with a .csv)
	SAMPLING_PLOT=$(abspath $(or $(SAMPLING_PLOT),adaptive-sampling.svg)) go test -count 1 -run '^TestAdaptivePlot$$' ./extensions/sampling

.PHONY: help run build ldflags ui ui-if-needed ui-test test-browser ui-screenshots ui-images bench-ui test test-go test-ui test-long test-tools test-program test-examples node-clients test-collector test-proxy test-engines test-engines-smoke engines image image-debug image-oci image-program test-deploy race lint lint-all docs generate fuzz fuzz-changed soak bench bench-once bench-store clickhouse-cluster bench-clickhouse bench-clickhouse-pages bench-kafka compare-tempo release release-check sampling-plot
