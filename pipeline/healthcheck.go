package pipeline

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"time"
)

const (
	healthTimeout  = 5 * time.Second
	healthPath     = "/readyz"
	maxHealthReply = 4 << 10 // bytes of an answer that are shown
	httpsScheme    = "https://"
)

// adminEndpoint returns where a running process with this configuration answers about its health: the listener of the first observer,
// with https:// in front where that has a block `tls`.
func (c *Config) adminEndpoint() (string, error) {
	used := c.inForce()
	for _, m := range c.sorted() {
		if !used[m] || !m.factory.component.Implements(observerType) {
			continue
		}
		found, scheme := "", ""
		walkFields(reflect.ValueOf(m.value).Elem(), nil, "", func(_ []string, v reflect.Value, tag reflect.StructTag) {
			switch field := v.Addr().Interface().(type) {
			case *Endpoint:
				found = cmp.Or(found, string(*field))
			case optional:
				if _, on := field.inner(); on && tag.Get("yaml") == "tls" {
					scheme = httpsScheme
				}
			}
		})
		if found != "" {
			return scheme + found, nil
		}
	}
	return "", errors.New("the configuration has no extension that answers health checks; give --endpoint host:port")
}

// askHealth asks the process at an address, host:port or https://host:port, whether it takes work. An error says why it does not.
func askHealth(ctx context.Context, endpoint string) error {
	endpoint, https := strings.CutPrefix(endpoint, httpsScheme)
	scheme := "http://"
	if https {
		scheme = httpsScheme
	}
	host, port, err := net.SplitHostPort(hostPort(endpoint))
	if err != nil {
		return fmt.Errorf("%q is not an address; write host:port", endpoint)
	}
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "localhost" // what listens everywhere listens there
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+net.JoinHostPort(host, port)+healthPath, nil)
	if err != nil {
		return fmt.Errorf("%q is not an address; write host:port", endpoint)
	}
	// The certificate is for the name that others use, not for localhost; nothing secret is sent, and what comes back is one bit.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // all that matters was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxHealthReply))
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s: %s", resp.Status, strings.TrimSpace(string(body)))
	}
	return nil
}

// hostPort completes a bare port number.
func hostPort(s string) string {
	if s != "" && strings.Trim(s, "0123456789") == "" {
		return ":" + s
	}
	return s
}
