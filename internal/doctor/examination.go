package doctor

import (
	"crypto/tls"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/internal/canary"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// examination is what the checks know: the configuration, the flags, and the process that runs it.
type examination struct {
	config    *app.Config
	used      []*app.Component // that the program builds, sorted
	build     status.Build
	env       pipeline.Env
	timeout   time.Duration
	query     string          // URL of the query API without a trailing slash; "" if unknown
	header    http.Header     // for receivers and the query API
	tenant    string          // of the test spans; "" if not given
	local     *http.Transport // for listeners of this configuration
	remote    *http.Transport // for other URLs
	tls       *tls.Config     // of clients of listeners of this configuration
	listeners []listener
	hops      []connection
	process   process
}

func newExamination(config *app.Config, build status.Build, f *flags) *examination {
	x := &examination{config: config, build: build, env: pipeline.SystemEnv(), timeout: f.timeout.Std(), header: f.header, tenant: f.tenant}
	used := config.Used()
	x.used = slices.DeleteFunc(config.Sorted(), func(c *app.Component) bool { return !used[c] })
	for _, c := range x.used {
		x.listeners = append(x.listeners, listenersOf(c)...)
		x.hops = append(x.hops, connectionsOf(c)...)
	}
	x.query = strings.TrimRight(f.query, "/")
	if x.query == "" {
		x.query = queryURL(queryListener(x.listeners))
	}
	// The certificates of the listeners are for other names than localhost.
	x.tls = &tls.Config{InsecureSkipVerify: true, Certificates: f.certificates} //nolint:gosec // on this host
	x.local = &http.Transport{DialContext: x.env.Dial, TLSClientConfig: x.tls.Clone()}
	x.remote = &http.Transport{DialContext: x.env.Dial,
		TLSClientConfig: &tls.Config{Certificates: f.certificates, MinVersion: tls.VersionTLS12}}
	return x
}

// close closes connections.
func (x *examination) close() {
	x.local.CloseIdleConnections()
	x.remote.CloseIdleConnections()
}

// reader returns a client of the query API.
func (x *examination) reader() *canary.Reader {
	if l := queryListener(x.listeners); l != nil && x.query == queryURL(l) {
		return &canary.Reader{Query: x.query, Header: x.headerFor(l), Transport: x.local}
	}
	return &canary.Reader{Query: x.query, Header: x.header, Transport: x.remote}
}

// settings are those of components that connect to other processes.
func (x *examination) settings() pipeline.Settings {
	return pipeline.Settings{ID: pipeline.ID{Type: "doctor"}, Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(), Env: x.env,
		Budget: pipeline.NewBudget(0), Report: func(error) {}}
}
