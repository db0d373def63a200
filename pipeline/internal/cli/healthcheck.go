package cli

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/commands"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
)

const (
	healthTimeout  = 5 * time.Second
	healthPath     = "/readyz"
	maxHealthReply = 4 << 10 // bytes of the response that are printed
)

func (c *command) defineHealthcheck(fs *flag.FlagSet) {
	fs.StringVar(&c.endpoint, "endpoint", "", "Address of the admin API: host:port, a port, or a URL. The default is the address "+
		"in the configuration, or $"+commands.VarAdminURL+" if neither PRESET nor --config is given.")
	fs.IntVar(&c.pid, "pid", 0, "ID of the process to check. The command uses the configuration that the command line "+
		"of this process selects, for example 1 in a container. Linux only.")
}

// adminVariable returns the URL of the admin API from the environment. It returns "" if the
// variable is not set, or if the command line selects a configuration, which takes precedence.
func (c *command) adminVariable() string {
	if c.load.Preset != "" || len(c.load.Files) > 0 {
		return ""
	}
	value, _ := c.lookupEnv(commands.VarAdminURL)
	return value
}

func (c *command) healthcheck(ctx context.Context) int {
	if c.pid != 0 {
		if err := c.useProcess(c.pid); err != nil {
			return c.misuse(c.chosen, err)
		}
	}
	if c.endpoint == "" {
		c.endpoint = c.adminVariable()
	}
	if c.endpoint == "" {
		cfg, err := config.Load(c.load)
		if err != nil {
			fmt.Fprintln(c.stderr, err)
			return exitUsage
		}
		if c.endpoint, err = cfg.AdminEndpoint(); err != nil {
			return c.misuse(c.chosen, err)
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
	scheme, address, found := strings.Cut(strings.TrimSuffix(endpoint, "/"), "://")
	if !found {
		scheme, address = "http", scheme
	}
	if address != "" && strings.Trim(address, "0123456789") == "" {
		address = ":" + address // a bare port
	}
	host, port, err := pipeline.SplitHostPort(address)
	if err != nil || scheme != "http" && scheme != "https" {
		return fmt.Errorf("%q is not an address; write host:port", endpoint)
	}
	host = commands.LocalHost(host)
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+healthPath, nil)
	if err != nil {
		return fmt.Errorf("%q is not an address; write host:port", address)
	}
	// The certificate is for another name than localhost. The request contains no secrets, and the
	// response is one bit.
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
