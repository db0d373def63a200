package pages

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// page is the requests of a page: those of each step are sent at the same time, after the responses
// of the step before.
type page struct {
	name  string
	steps []step
}

// step returns paths of requests. It gets the trace ids in the responses of the step before.
type step func(ids []string) []string

// asks returns a step of requests that need nothing of the step before.
func asks(paths ...string) step { return func([]string) []string { return paths } }

const ui = "/api/ui/v1/"

// pages returns the requests of the pages of the UI, with its defaults.
func (s *stores) pages() []page {
	service := s.set.Services()[len(s.set.Services())/2]
	ofService := fmt.Sprintf("{ service = %q }", service)
	search := func(q string) string { return ui + "search?" + s.params("q", q, "limit", "50", "matched", "1") }
	all := ui + "search?" + s.params("q", "", "limit", "50")
	heat := func(q string) string {
		return ui + "heatmap?" + s.params("q", q, "of", "traces", "exemplars", "500", "step", "10s")
	}
	facets := func(q string) string { return ui + "compare?" + s.params("q", q, "sel_q", "{ error }", "values", "40") }
	changes := ui + "changes?" + s.params()
	errors := func(params ...string) string {
		return ui + "errors?" + s.params(append(params, "before", "1", "limit", "50")...)
	}
	critical := func(ids []string) []string {
		return []string{ui + "critical?ids=" + strings.Join(ids[:min(len(ids), 50)], ",")}
	}
	return []page{
		{"overview", []step{asks(ui+"services?"+s.params(), errors("sort", "growth"), changes, ui+"ingest"),
			asks(ui + "incidents?" + s.params())}},
		{"services", []step{asks(ui+"services?"+s.params(), changes)}},
		{"service", []step{asks(ui+"service?"+s.params("service", service), changes),
			asks(ui+"map?"+s.params("service", service),
				ui+"facets?"+s.params("q", ofService, "values", "3", "fields", "resource.service.version, resource.telemetry.sdk.language, "+
					"resource.service.instance.id, resource.k8s.pod.name, resource.host.name"),
				ui+"facets?"+s.params("q", fmt.Sprintf("{ service = %q && (kind = client || kind = producer) }", service), "values", "1",
					"fields", "span.peer.service, span.server.address, span.net.peer.name"),
				ui+"search?"+s.params("q", fmt.Sprintf("{ service = %q && (kind = server || kind = consumer) && error } | "+
					"select(name, statusMessage)", service), "limit", "8"))}},
		{"map", []step{asks(ui + "map?" + s.params())}},
		{"explore", []step{asks(all), func(ids []string) []string { return append(critical(ids), heat(""), facets(""), changes) }}},
		{"explore a service", []step{asks(search(ofService)),
			func(ids []string) []string { return append(critical(ids), heat(ofService), facets(ofService), changes) }}},
		{"explore spans", []step{asks(all), asks(ui+"heatmap?"+s.params("q", "", "of", "spans", "exemplars", "500"), facets(""))}},
		{"groups", []step{asks(ui + "groups?" + s.params("q", "", "by", "service, name", "of", "spans", "sort", "count", "limit", "100"))}},
		{"explain errors", []step{asks(all), asks(heat(""), changes, ui+"explain?"+s.params("q", "", "of", "traces", "sel_q", "{ error }"))}},
		{"explain slowest", []step{asks(ui + "explain?" + s.params("q", ofService, "of", "spans", "sel_slowest", "0.05"))}},
		{"errors", []step{asks(errors())}},
		{"errors of a search", []step{asks(search(ofService)), asks(heat(ofService), facets(ofService), changes, errors("q", ofService))}},
		{"dependencies", []step{asks(fmt.Sprintf("/api/dependencies?endTs=%d&lookback=%d",
			s.to.UnixMilli(), s.to.Sub(s.from).Milliseconds()))}},
		{"service search", []step{asks(fmt.Sprintf("/api/traces?service=%s&limit=20&start=%d&end=%d",
			service, s.from.UnixMicro(), s.to.UnixMicro()))}},
	}
}

// client sends requests to a query service.
type client struct {
	b   *testing.B
	url string
}

// open sends the requests of a page, and returns the time until the last response.
func (p *page) open(c *client) time.Duration {
	start := time.Now()
	var ids []string
	for _, s := range p.steps {
		var wait sync.WaitGroup
		var mu sync.Mutex
		var found []string
		for _, path := range s(ids) {
			wait.Go(func() {
				began := time.Now()
				answer := c.get(path)
				if testing.Verbose() {
					c.b.Logf("%s %s: %s", p.name, path[:min(len(path), 60)], time.Since(began))
				}
				mu.Lock()
				found = append(found, answer...)
				mu.Unlock()
			})
		}
		wait.Wait()
		ids = found
	}
	return time.Since(start)
}

// get sends a request, and returns the trace ids in a response of lines.
func (c *client) get(path string) (ids []string) {
	resp, err := http.Get(c.url + path)
	if err != nil {
		c.b.Error(err)
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		c.b.Errorf("%s: %d %s", path, resp.StatusCode, body)
		return nil
	}
	if !strings.HasPrefix(path, ui+"search") {
		_, err := io.Copy(io.Discard, resp.Body)
		if err != nil {
			c.b.Errorf("%s: %v", path, err)
		}
		return nil
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line struct{ Trace *struct{ TraceID string } }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			c.b.Errorf("%s: %v", path, err)
		} else if line.Trace != nil {
			ids = append(ids, line.Trace.TraceID)
		}
	}
	return ids
}
