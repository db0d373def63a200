package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/cluster"
	"github.com/tracing-backend/tracing/test/engines/process"
)

// Ports of the first collector and query service. Those of the second ones are higher by portStep.
const (
	otlpGRPCPort   = 4317
	otlpHTTPPort   = 4318
	nativeGRPCPort = 14250
	nativeHTTPPort = 14268
	queryPort      = 16686
	adminPort      = 24269
	portStep       = 1000
	perKind        = 2 // collectors, and query services
)

// programs are the running collectors and query services.
type programs struct {
	otlp    []string // addresses
	query   []string // URLs
	running []*process.Process
}

// startPrograms starts the collectors and query services, and waits until they are ready.
func startPrograms(ctx context.Context, o options, servers []string) (*programs, error) {
	p := &programs{}
	store := []string{"exporters::clickhouse::endpoints=[" + strings.Join(servers, ", ") + "]",
		"exporters::clickhouse::cluster::name=" + cluster.Name, "exporters::clickhouse::cluster::sharded=true"}
	for i := range perKind {
		grpc, admin := process.LocalAddr(otlpGRPCPort+portStep*i), process.LocalAddr(adminPort+portStep*i)
		p.otlp = append(p.otlp, grpc)
		if err := p.start(ctx, o, fmt.Sprintf("collector-%d", i+1), admin, "collector-clickhouse", store,
			"receivers::otlp::protocols::grpc::endpoint="+grpc,
			"receivers::otlp::protocols::http::endpoint="+process.LocalAddr(otlpHTTPPort+portStep*i),
			"receivers::native::protocols::grpc::endpoint="+process.LocalAddr(nativeGRPCPort+portStep*i),
			"receivers::native::protocols::http::endpoint="+process.LocalAddr(nativeHTTPPort+portStep*i),
			"extensions::admin::endpoint="+admin); err != nil {
			return p, err
		}
	}
	for i := range perKind {
		http, admin := process.LocalAddr(queryPort+portStep*i), process.LocalAddr(adminPort+portStep*(perKind+i))
		p.query = append(p.query, "http://"+http)
		if err := p.start(ctx, o, fmt.Sprintf("query-%d", i+1), admin, "query-clickhouse", store,
			"extensions::query::http::endpoint="+http,
			"extensions::query::grpc::endpoint="+process.LocalAddr(queryPort-1+portStep*i),
			"extensions::admin::endpoint="+admin); err != nil {
			return p, err
		}
	}
	return p, nil
}

// start starts the program with a preset and settings, and waits until it is ready.
func (p *programs) start(ctx context.Context, o options, name, admin, preset string, store []string, settings ...string) error {
	dir := filepath.Join(o.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	args := []string{preset}
	for _, s := range slices.Concat(store, settings, []string{"service::data_dir=" + dir}) {
		args = append(args, "--set", s)
	}
	started, err := process.Start(exec.Command(o.program, args...), filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	p.running = append(p.running, started)
	err = started.Poll(ctx, func() error { return ready(ctx, "http://"+admin+"/readyz") })
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// stop stops all programs, the query services first.
func (p *programs) stop() {
	for i := len(p.running) - 1; i >= 0; i-- {
		p.running[i].Terminate()
	}
}

// ready asks a program whether it is ready.
func ready(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return nil
}
