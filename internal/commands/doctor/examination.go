package doctor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk"
	"github.com/tracing-backend/tracing/internal/commands/canary"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// examination is the information for checks: the configuration, the flags, and the process that
// runs the configuration.
type examination struct {
	config    *app.Config
	used      []*app.Component // components that the program builds, sorted
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
		x.hops = append(x.hops, connectionsOf(config, c)...)
	}
	x.query = strings.TrimRight(f.query, "/")
	if x.query == "" {
		x.query = queryURL(queryListener(x.listeners))
	}
	// The certificates of the listeners are not for localhost.
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

// settings are the settings of components that connect to other processes.
func (x *examination) settings() pipeline.Settings {
	return pipeline.Settings{ID: pipeline.ID{Type: "doctor"}, Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(), Env: x.env,
		Budget: pipeline.NewBudget(0), Report: func(error) {}}
}

// maxAnswer is the maximum number of bytes read from a response.
const maxAnswer = 4 << 20

// process is the process that runs the configuration.
type process struct {
	running bool
	hangs   string // why a listening process does not count as running; "" if there is none
	pid     int    // 0 if unknown
	version string // "" if unknown
	admin   string // URL of the admin API; "" if the configuration has none
}

// detect finds the process. It is there if the admin API of the configuration responds, or, without
// an admin API, if a process of this program has one of the ports open, which is only known on
// Linux.
func (x *examination) detect(parent context.Context) {
	ctx, cancel := context.WithTimeout(parent, x.timeout)
	defer cancel()
	endpoint, err := x.config.AdminEndpoint()
	if err != nil {
		x.detectOwner(ctx)
		return
	}
	i := 0
	for i < len(x.listeners) && x.listeners[i].address != strings.TrimPrefix(endpoint, "https://") {
		i++
	}
	if i == len(x.listeners) {
		return
	}
	admin := &x.listeners[i]
	x.process.admin = admin.url()
	body, err := x.get(ctx, x.process.admin+"/version", x.headerFor(admin))
	if refused := (*statusError)(nil); err != nil && !errors.As(err, &refused) {
		if isTimeout(err) && parent.Err() == nil {
			x.detectHang(parent, admin)
		}
		return
	}
	x.process.running, x.process.pid = true, ownerOf(ctx, x.env, admin.network, admin.address).pid
	var version struct {
		Version string `json:"gitVersion"`
	}
	if json.Unmarshal(body, &version) == nil { // health_check has no version, and the admin API may need credentials
		x.process.version = version.Version
	}
}

// detectHang finds a process that accepts connections for the admin API and does not respond.
func (x *examination) detectHang(ctx context.Context, admin *listener) {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	o := ownerOf(ctx, x.env, admin.network, admin.address)
	if o.pid > 0 && !o.isProgram() || !x.isOpen(ctx, admin) {
		return
	}
	x.process.pid = o.pid
	x.process.hangs = fmt.Sprintf("%s listens, but does not respond within %s", x.process, x.timeout)
	if o.isStopped() {
		x.process.hangs = fmt.Sprintf("%s listens, but is stopped by a signal", x.process)
	}
}

// detectOwner finds a process of this program that listens on one of the ports.
func (x *examination) detectOwner(ctx context.Context) {
	for i := range x.listeners {
		l := &x.listeners[i]
		if o := ownerOf(ctx, x.env, l.network, l.address); o.isProgram() {
			x.process.running, x.process.pid = true, o.pid
			return
		}
	}
}

// get requests a URL and returns the body of a success response.
func (x *examination) get(ctx context.Context, url string, header http.Header) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := x.local.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // the body was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, &statusError{resp.StatusCode, strings.TrimSpace(string(body[:min(len(body), maxQuoted)]))}
	}
	return body, nil
}

// maxQuoted is the maximum number of bytes quoted from an unexpected response.
const maxQuoted = 200

// statusError is the error for a response other than success.
type statusError struct {
	status int
	text   string
}

// Error returns the status and the beginning of the response.
func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.text) }

// checkVersions compares this program with the running process and with stored files.
func checkVersions(_ context.Context, x *examination) []Finding {
	found := []Finding{x.programVersion()}
	for _, c := range x.used {
		if _, ok := c.Value.(*disk.Config); ok {
			folder := x.storeFolder(c)
			found = append(found, x.formatOf(key(c)+" ("+folder+")", folder))
		}
	}
	return found
}

func (x *examination) programVersion() Finding {
	const subject = "program"
	switch {
	case !x.process.running || x.process.version == "":
		return newFinding(subject, OK, "this is version %s", x.build.Version)
	case x.process.version != x.build.Version:
		return newFinding(subject, Warning, "%s has version %s, this is %s", x.process, x.process.version, x.build.Version).
			advise("restart the process if it should run this version; otherwise run the command of its version")
	}
	return newFinding(subject, OK, "%s and this command have version %s", x.process, x.build.Version)
}

func (x *examination) formatOf(subject, folder string) Finding {
	exists, err := disk.CheckFormat(x.env.FS, folder)
	switch {
	case err != nil:
		return newFinding(subject, Problem, "%v", err).advise("see docs/upgrading.md")
	case !exists:
		return newFinding(subject, OK, "no store yet; this program creates one of format %d", disk.Format)
	}
	return newFinding(subject, OK, "this program reads the format of the store")
}
