package client

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/certs"
)

// AuthConfig are the keys below `auth`.
type AuthConfig struct {
	BearerTokenFile string `yaml:"bearer_token_file" doc:"File of a token that is sent as Authorization: Bearer; it is read again when it changes."`
}

const authorization = "authorization"

// headers are sent with every request: fixed ones, and the token as it is now.
type headers struct {
	fixed []string // name, value, name, value...; names in lower case
	token *certs.Follower[string]
}

func newHeaders(set pipeline.Settings, fixed map[string]pipeline.Secret, auth AuthConfig) headers {
	var h headers
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		h.fixed = append(h.fixed, strings.ToLower(name), string(fixed[name]))
	}
	if file := auth.BearerTokenFile; file != "" {
		h.token = certs.Follow([]string{file}, follow(set, "tokens", pipeline.Duration(defaultReload)), parseToken(file))
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

// now returns the headers of a request: name, value, name, value... The caller must not change them.
func (h *headers) now() []string {
	if h.token == nil {
		return h.fixed
	}
	return append(h.fixed[:len(h.fixed):len(h.fixed)], authorization, "Bearer "+h.token.Get())
}

// parseToken returns the parser of a file that holds a token and white space around it.
func parseToken(file string) func([][]byte) (string, error) {
	return func(contents [][]byte) (string, error) {
		token := strings.TrimSpace(string(contents[0]))
		if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return "", fmt.Errorf("%s must hold one token of visible ASCII characters", file)
		}
		return token, nil
	}
}

// validateHeaders reports names and values that cannot be sent; values are never shown.
func validateHeaders(fixed map[string]pipeline.Secret, auth AuthConfig) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		key := "headers::" + name
		switch {
		case !validName(name):
			errs = append(errs, pipeline.BadKey(key, "%q is no name of a header: letters, digits, -, _ and . make one", name))
		case strings.ContainsFunc(string(fixed[name]), func(r rune) bool { return r < ' ' || r > '~' }):
			errs = append(errs, pipeline.BadKey(key, "the value holds a line break or something else that is no printable ASCII"))
		case strings.EqualFold(name, authorization) && auth.BearerTokenFile != "":
			errs = append(errs, pipeline.BadKey(key, "the same header comes from auth::bearer_token_file; delete one of them"))
		}
	}
	return errors.Join(errs...)
}

// validName reports whether gRPC and HTTP can send a header of that name, and do not use it themselves.
func validName(name string) bool {
	name = strings.ToLower(name)
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" && !strings.HasPrefix(name, "grpc-")
}
