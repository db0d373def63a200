package traces

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/commands"
)

const (
	exampleQuery = "http://localhost:16686"
	queryPort    = 16686
	tenantHeader = "X-Tenant"
)

// commonFlags holds the flags of all commands.
type commonFlags struct {
	query, tenant string
	header        http.Header
	timeout       pipeline.Duration
	maxAnswer     pipeline.ByteSize
	json          bool
}

func (c *commonFlags) define(fs *flag.FlagSet, getenv func(string) string) {
	fs.StringVar(&c.query, "query", commands.DefaultURL(getenv, commands.VarQueryURL, queryPort),
		"URL of the query service, including its base path. $"+commands.VarQueryURL+" sets the default.")
	fs.StringVar(&c.tenant, "tenant", "", "Tenant to query, sent in the header "+strings.ToLower(tenantHeader)+".")
	c.header = commands.HeaderFlag(fs, "Header for all requests")
	fs.TextVar(&c.timeout, "timeout", pipeline.Duration(defaultTimeout), "Timeout of requests.")
	fs.TextVar(&c.maxAnswer, "max-answer", pipeline.ByteSize(defaultMaxAnswer), "Maximum size of a response.")
	fs.BoolVar(&c.json, "json", false, "Print the response as JSON.")
}

// check returns an error for each invalid value.
func (c *commonFlags) check() error {
	var errs []error
	if !isURL(c.query) {
		errs = append(errs, fmt.Errorf("--query: %q is not a valid URL; expected something like %s", pipeline.MaskURLs(c.query), exampleQuery))
	}
	if c.timeout <= 0 {
		errs = append(errs, errors.New("--timeout must be above 0"))
	}
	if c.maxAnswer <= 0 {
		errs = append(errs, errors.New("--max-answer must be above 0"))
	}
	return errors.Join(errs...)
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return false
	}
	return u.User == nil && u.RawQuery == "" && u.Fragment == "" // they would be printed, or not be sent
}

// withClient checks the flags and calls f with a client.
func (t tool) withClient(ctx context.Context, c *commonFlags, f func(context.Context, *client) error) error {
	if err := c.check(); err != nil {
		return commands.BadUsage("%w", err)
	}
	if c.tenant != "" {
		c.header[tenantHeader] = []string{c.tenant}
	}
	timeout := c.timeout.Std()
	transport := &http.Transport{DialContext: t.env.Dial, ForceAttemptHTTP2: true, TLSHandshakeTimeout: timeout}
	defer transport.CloseIdleConnections()
	return f(ctx, &client{
		base: strings.TrimRight(c.query, "/"), header: c.header, timeout: timeout, maxAnswer: int64(c.maxAnswer), transport: transport,
	})
}

// parseTime parses a time in RFC 3339 format, or a duration before now.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at, nil
	}
	var ago pipeline.Duration
	if ago.UnmarshalText([]byte(text)) != nil {
		return time.Time{}, fmt.Errorf("--%s: %q is not a time; use 2026-11-21T17:00:00Z, or 30m, 1h or 7d for a time before now", flag, text)
	}
	return now.Add(-ago.Std()), nil
}
