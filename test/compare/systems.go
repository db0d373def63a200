package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// system is a running program.
type system struct {
	name string
	otlp string // URL for OTLP over HTTP
	api  string // URL of Tempo's API
}

// tempoConfig is the documented configuration of a single program, with time limits that allow
// spans of the past.
const tempoConfig = `
server: {http_listen_address: 127.0.0.1, http_listen_port: %[2]d, grpc_listen_address: 127.0.0.1, grpc_listen_port: %[3]d, log_level: warn}
distributor: {receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:%[4]d"}}}}}
storage:
  trace:
    backend: local
    wal: {path: "%[1]s/wal", ingestion_time_range_slack: 24h}
    local: {path: "%[1]s/blocks"}
    blocklist_poll: 5s
live_store:
  complete_block_timeout: 24h
  wal: {path: "%[1]s/live", ingestion_time_range_slack: 24h}
  shutdown_marker_dir: "%[1]s/marker"
memberlist: {bind_addr: [127.0.0.1], bind_port: %[5]d, advertise_addr: 127.0.0.1}
overrides: {defaults: {ingestion: {rate_limit_bytes: 1000000000, burst_size_bytes: 1000000000, max_traces_per_user: 0}}}
usage_report: {reporting_enabled: false}
`

// tracingConfig flushes as early as Tempo, so that both answer from stored blocks.
const tracingConfig = `
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:%[3]d"}}}}
exporters: {disk: {memtable: {max_age: 30s}}}
extensions: {query: {storage: disk, max_limit: 100000, http: {endpoint: "127.0.0.1:%[2]d"}}}
service:
  data_dir: %[1]q
  extensions: [query]
  pipelines: {traces: {receivers: [otlp], exporters: [disk]}}
`

// start starts both programs, Tempo first, and waits until they answer. stop ends them.
func start(ctx context.Context, o options, dir string) (systems []*system, stop func(), err error) {
	var processes []*exec.Cmd
	stop = func() {
		for _, p := range processes {
			p.Process.Kill() //nolint:errcheck // it may have ended; its files are temporary
			p.Wait()         //nolint:errcheck // the exit status does not matter
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	ports, err := freePorts(6)
	if err != nil {
		return nil, nil, err
	}
	run := func(name, program, config string, args ...string) error {
		folder := filepath.Join(dir, name)
		file := folder + ".yaml"
		if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(file, []byte(config), 0o644)); err != nil {
			return err
		}
		log, err := os.Create(folder + ".log")
		if err != nil {
			return err
		}
		defer log.Close()
		program, err = filepath.Abs(program)
		if err != nil {
			return err
		}
		p := exec.Command(program, append(args, file)...)
		p.Stdout, p.Stderr, p.Dir = log, log, folder
		if err := p.Start(); err != nil {
			return err
		}
		processes = append(processes, p)
		return nil
	}
	local := func(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }
	systems = []*system{
		{"tempo", local(ports[2]) + "/v1/traces", local(ports[0])},
		{"tracing", local(ports[5]) + "/v1/traces", local(ports[4]) + "/tempo"},
	}
	err = errors.Join(
		run("tempo", o.tempo, fmt.Sprintf(tempoConfig, filepath.Join(dir, "tempo"), ports[0], ports[1], ports[2], ports[3]), "-config.file"),
		run("tracing", o.tracing, fmt.Sprintf(tracingConfig, filepath.Join(dir, "tracing"), ports[4], ports[5]), "--config"))
	for _, s := range systems {
		if err == nil {
			err = s.awaitReady(ctx, filepath.Join(dir, s.name+".log"))
		}
	}
	return systems, stop, err
}

func freePorts(n int) (ports []int, err error) {
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer ln.Close() // after all are chosen, so that they differ
		ports = append(ports, ln.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// awaitReady waits until a search is answered.
func (s *system) awaitReady(ctx context.Context, log string) error {
	text, _, err := s.poll(ctx, 3*time.Minute, func() (string, bool, error) {
		status, body, err := get(ctx, s.api+"/api/search?q="+url.QueryEscape("{}"))
		return string(body), err == nil && status == http.StatusOK, nil
	})
	if err != nil {
		lines, _ := os.ReadFile(log)
		return fmt.Errorf("not ready: %w: %s\n%s", err, text, lines[max(0, len(lines)-2000):])
	}
	return nil
}

// poll calls check twice a second until it is done.
func (s *system) poll(ctx context.Context, timeout time.Duration, check func() (string, bool, error)) (text string, done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		if text, done, err = check(); done || err != nil {
			return text, done, err
		}
		select {
		case <-ctx.Done():
			return text, false, ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// load sends the spans of a data set.
func (s *system) load(ctx context.Context, data *dataSet) error {
	for r := range data.requests {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.otlp, bytes.NewReader(r.Body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-protobuf")
		status, body, err := do(req)
		if err != nil {
			return err
		}
		if status != http.StatusOK {
			return fmt.Errorf("sending spans: %d %s", status, body)
		}
	}
	return nil
}

// awaitSpans waits until all spans are counted.
func (s *system) awaitSpans(ctx context.Context, data *dataSet) error {
	text, _, err := s.poll(ctx, 10*time.Minute, func() (string, bool, error) {
		a, err := s.ask(ctx, query{kind: "instant", q: "{ } | count_over_time()"}, data)
		var found seriesAnswer
		if err == nil && a.status == http.StatusOK {
			err = json.Unmarshal(a.body, &found)
		}
		n := 0
		if len(found.Series) > 0 {
			n = int(found.Series[0].Value)
		}
		return fmt.Sprintf("%d of %d spans", n, data.spans), n == data.spans, err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return nil
}

// answer is a response over HTTP.
type answer struct {
	status int
	body   []byte
}

// maxTraces and maxSpans are the limits of searches, above what the data set has.
const (
	maxTraces = 50_000
	maxSpans  = 100
)

// ask sends a query.
func (s *system) ask(ctx context.Context, q query, data *dataSet) (a answer, err error) {
	start, end := strconv.FormatInt(data.begin.Unix(), 10), strconv.FormatInt(data.end.Unix(), 10)
	v := url.Values{"start": {start}, "end": {end}}
	path := ""
	switch q.kind {
	case "search":
		path = "/api/search"
		v.Set("q", q.q)
		v.Set("limit", strconv.Itoa(maxTraces))
		v.Set("spss", strconv.Itoa(maxSpans))
	case "range", "instant":
		path = "/api/metrics/query"
		v.Set("q", q.q)
		v.Set("exemplars", "0")
		if q.kind == "range" {
			path += "_range"
			v.Set("step", "5s")
		}
	case "tags":
		path = "/api/v2/search/tags"
		v.Set("scope", q.q)
	case "values":
		name, narrow, _ := strings.Cut(q.q, " ")
		path = "/api/v2/search/tag/" + url.PathEscape(name) + "/values"
		v.Set("q", narrow)
	case "get":
		a.status, a.body, err = get(ctx, s.api+"/"+strings.NewReplacer("START", start, "END", end, "TRACE", data.trace).Replace(q.q))
		return a, err
	}
	a.status, a.body, err = get(ctx, s.api+path+"?"+v.Encode())
	return a, err
}

func get(ctx context.Context, url string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	return do(req)
}

func do(req *http.Request) (status int, body []byte, err error) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}
