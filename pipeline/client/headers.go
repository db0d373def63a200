package client

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/certs"
)

// AuthConfig is the block `auth`.
type AuthConfig struct {
	BearerTokenFile string          `yaml:"bearer_token_file" path:"file" doc:"File with the token for the header Authorization: Bearer TOKEN. It is reread when it changes."`
	Username        string          `yaml:"username" doc:"User name for basic authentication: the header Authorization: Basic."`
	Password        pipeline.Secret `yaml:"password" doc:"Password for username."`
}

// fixed returns the value of the Authorization header if it never changes, otherwise "".
func (c *AuthConfig) fixed() string {
	if c.Username == "" {
		return ""
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.Username+":"+string(c.Password)))
}

// Validate reports contradictions and missing credentials: a block without credentials is an error,
// so that no request is sent without them by mistake. Errors do not contain the password.
func (c *AuthConfig) Validate() error {
	if c.Username == "" && c.Password == "" && c.BearerTokenFile == "" {
		return pipeline.BadKey("", "must have username and password, or bearer_token_file")
	}
	var errs []error
	if c.Username != "" && c.BearerTokenFile != "" {
		errs = append(errs, pipeline.BadKey("username", "contradicts bearer_token_file; remove one of them"))
	}
	if c.Username == "" && c.Password != "" {
		errs = append(errs, pipeline.BadKey("password", "needs username"))
	}
	if strings.Contains(c.Username, ":") {
		errs = append(errs, pipeline.BadKey("username", "must not contain a colon"))
	}
	return errors.Join(errs...)
}

const authorization = "authorization"

// headers are the headers of every request: the configured ones and the current token.
type headers struct {
	fixed  []string                // alternating names, in lower case, and values
	token  *certs.Reloader[string] // nil if none
	secret bool                    // whether auth is configured
}

func newHeaders(set pipeline.Settings, fixed map[string]pipeline.Secret, block pipeline.Optional[AuthConfig]) headers {
	auth, on := block.Get()
	h := headers{secret: on}
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		h.fixed = append(h.fixed, strings.ToLower(name), string(fixed[name]))
	}
	if value := auth.fixed(); value != "" {
		h.fixed = append(h.fixed, authorization, value)
	}
	if file := auth.BearerTokenFile; file != "" {
		h.token = certs.NewReloader([]string{file}, reloadOptions(set, "tokens", pipeline.Duration(defaultReload)), parseToken(file))
	}
	return h
}

// load reads the token for the first time.
func (h *headers) load() error {
	if h.token == nil {
		return nil
	}
	if err := h.token.Load(); err != nil {
		return fmt.Errorf("auth::bearer_token_file: %w", err)
	}
	return nil
}

// current returns alternating names and values. The caller must not modify the slice.
func (h *headers) current() []string {
	if h.token == nil {
		return h.fixed
	}
	return append(h.fixed[:len(h.fixed):len(h.fixed)], authorization, "Bearer "+h.token.Get())
}

// parseToken returns the parser of a token file. It removes surrounding white space.
func parseToken(file string) func([][]byte) (string, error) {
	return func(contents [][]byte) (string, error) {
		token := strings.TrimSpace(string(contents[0]))
		if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return "", fmt.Errorf("%s must contain one token of visible ASCII characters", file)
		}
		return token, nil
	}
}

// validateHeaders reports invalid names and values. Errors do not contain values, which may be
// secret.
func validateHeaders(fixed map[string]pipeline.Secret, auth pipeline.Optional[AuthConfig]) error {
	var errs []error
	_, authenticates := auth.Get()
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		key := "headers::" + name
		switch {
		case !validName(name):
			errs = append(errs, pipeline.BadKey(key, "%q is not a valid header name; use letters, digits, -, _ and .", name))
		case strings.ContainsFunc(string(fixed[name]), func(r rune) bool { return r < ' ' || r > '~' }):
			errs = append(errs, pipeline.BadKey(key, "value contains a line break or another character that is not printable ASCII"))
		case strings.EqualFold(name, authorization) && authenticates:
			errs = append(errs, pipeline.BadKey(key, "also set by auth; remove one of them"))
		}
	}
	return errors.Join(errs...)
}

// validName reports whether gRPC and HTTP can send a header with this name. Names reserved by gRPC
// are invalid.
func validName(name string) bool {
	name = strings.ToLower(name)
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" && !strings.HasPrefix(name, "grpc-")
}
