package doctor

import (
	"context"
	"encoding/json"
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
	pid     int    // 0 if unknown
	version string // "" if unknown
	admin   string // URL of the admin API; "" if the configuration has none
}

// detect finds the process: the admin API of the configuration answers, or without one, a listener
// accepts connections.
func (x *examination) detect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	endpoint, err := x.config.AdminEndpoint()
	if err != nil {
		x.process.running = x.anyAnswers(ctx)
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
	body, err := x.get(ctx, x.process.admin+"/version", nil)
	if err != nil {
		return
	}
	var version struct {
		Version string `json:"gitVersion"`
	}
	if json.Unmarshal(body, &version) != nil {
		return
	}
	owner := ownerOf(ctx, x.env, admin.network, admin.address)
	x.process.running, x.process.version, x.process.pid = true, version.Version, owner.pid
}

// anyAnswers reports whether a TCP listener accepts connections.
func (x *examination) anyAnswers(ctx context.Context) bool {
	for i := range x.listeners {
		l := &x.listeners[i]
		if l.network != "tcp" {
			continue
		}
		conn, err := x.env.Dial(ctx, "tcp", l.hostPort())
		if err == nil {
			conn.Close() //nolint:errcheck // nothing was sent
			return true
		}
	}
	return false
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
