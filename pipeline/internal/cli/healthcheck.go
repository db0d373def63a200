package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline/internal/config"
)

const (
	healthTimeout  = 5 * time.Second
	healthPath     = "/readyz"
	maxHealthReply = 4 << 10 // bytes of the answer that are printed
	httpsScheme    = "https://"
)

func (c *command) healthcheck(ctx context.Context) int {
	if c.endpoint == "" {
		cfg, err := config.Load(c.load)
		if err != nil {
			fmt.Fprintln(c.stderr, err)
			return exitUsage
		}
		if c.endpoint, err = cfg.AdminEndpoint(); err != nil {
			return c.misuse(err)
		}
	}
	if err := checkHealth(ctx, c.endpoint); err != nil {
		return c.fail(err)
	}
	fmt.Fprintln(c.stdout, "ready")
	return exitOK
}

// checkHealth returns nil if the process at endpoint, host:port or https://host:port, is ready.
func checkHealth(ctx context.Context, endpoint string) error {
	address, https := strings.CutPrefix(endpoint, httpsScheme)
	scheme := "http://"
	if https {
		scheme = httpsScheme
	}
	if address != "" && strings.Trim(address, "0123456789") == "" {
		address = ":" + address // a bare port
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address; write host:port", address)
	}
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "localhost" // the process listens on all addresses
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+net.JoinHostPort(host, port)+healthPath, nil)
	if err != nil {
		return fmt.Errorf("%q is not an address; write host:port", address)
	}
	// The certificate is for another name than localhost. The request contains nothing secret, and
	// the answer is one bit.
	insecure := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // see above
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: insecure}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // everything needed has been read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxHealthReply))
	if err != nil {
		return fmt.Errorf("reading the response: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s: %s", resp.Status, strings.TrimSpace(string(body)))
	}
	return nil
}
