package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxAnswer is the maximum number of bytes read from an answer.
const maxAnswer = 4 << 20

// process is the process that runs the configuration.
type process struct {
	running bool
	hangs   string // why a process that listens does not count as running; "" if there is none
	pid     int    // 0 if unknown
	version string // "" if unknown
	admin   string // URL of the admin API; "" if the configuration has none
}

// detect finds the process: the admin API of the configuration answers. Without one, a process of
// this program has one of the ports open, which only Linux tells.
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

// detectHang finds a process that accepts connections for the admin API and answers none.
func (x *examination) detectHang(ctx context.Context, admin *listener) {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	o := ownerOf(ctx, x.env, admin.network, admin.address)
	if o.pid > 0 && !o.isProgram() || !x.isOpen(ctx, admin) {
		return
	}
	x.process.pid = o.pid
	x.process.hangs = fmt.Sprintf("%s listens, but does not answer within %s", x.process, x.timeout)
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

// get requests a URL and returns the body of a success answer.
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

// maxQuoted is the maximum number of bytes quoted from an unexpected answer.
const maxQuoted = 200

// statusError is the error for an answer other than success.
type statusError struct {
	status int
	text   string
}

// Error returns the status and the beginning of the answer.
func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.text) }
