package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// credentialFiles writes a file of tokens, and one of the user ann with the password secret.
func credentialFiles(t *testing.T, tokens string) (tokenFile, userFile string) {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tokenFile, userFile = filepath.Join(dir, "tokens"), filepath.Join(dir, "users")
	for file, content := range map[string]string{tokenFile: tokens, userFile: "ann:" + string(hash) + "\n"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return tokenFile, userFile
}

// Credentials give access to the listed tenants only, over HTTP and gRPC.
func TestTenantsOfCredentials(t *testing.T) {
	tokens, users := credentialFiles(t, "one acme\ntwo\tacme, globex\nall *\n")
	const ann, annWrong = "Basic YW5uOnNlY3JldA==", "Basic YW5uOng=" // ann:secret, ann:x
	limited := authConfig(tokens, users)
	limited.UserTenants = map[string][]string{"ann": {"acme"}}
	unlisted := authConfig(tokens, users)
	unlisted.UserTenants = map[string][]string{"bob": {"acme"}}
	const notAllowed, noTenants = "these credentials do not allow this tenant",
		"these credentials are limited to tenants, and this listener does not separate tenants"
	for _, c := range []struct {
		name                  string
		auth                  server.AuthConfig
		authorization, tenant string // without tenancy if the tenant is "-"
		want                  string // error, "" if accepted
		code                  codes.Code
	}{
		{"token", limited, "Bearer one", "acme", "", codes.OK},
		{"token, other tenant", limited, "Bearer one", "globex", notAllowed, codes.PermissionDenied},
		{"token with two tenants", limited, "Bearer two", "globex", "", codes.OK},
		{"token with all tenants", limited, "Bearer all", "initech", "", codes.OK},
		{"list is no part of the token", limited, "Bearer one acme", "acme", "invalid credentials", codes.Unauthenticated},
		{"user", limited, ann, "acme", "", codes.OK},
		{"user, other tenant", limited, ann, "globex", notAllowed, codes.PermissionDenied},
		{"wrong password, other tenant", limited, annWrong, "globex", "invalid credentials", codes.Unauthenticated},
		{"wrong password, no tenant", limited, annWrong, "", "invalid credentials", codes.Unauthenticated},
		{"user who is not listed", unlisted, ann, "acme", notAllowed, codes.PermissionDenied},
		{"token without tenancy", limited, "Bearer one", "-", noTenants, codes.PermissionDenied},
		{"token with all tenants, without tenancy", limited, "Bearer all", "-", "", codes.OK},
		{"user without tenancy", limited, ann, "-", noTenants, codes.PermissionDenied},
		{"users without tenants", authConfig(tokens, users), ann, "globex", "", codes.OK},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.auth.Validate(); err != nil {
				t.Fatal(err)
			}
			secure := func(s *server.SecurityConfig) {
				s.Auth = pipeline.Present(c.auth)
				if c.tenant != "-" {
					s.Tenancy = pipeline.Present(server.TenancyConfig{Enabled: true, Header: "x-tenant"})
				}
			}
			web := startHTTP(t, secureSettings(time.Now), func(h *server.HTTPConfig) { secure(&h.SecurityConfig) })
			rpc := startGRPC(t, secureSettings(time.Now), func(g *server.GRPCConfig) { secure(&g.SecurityConfig) })
			header := []string{"authorization", c.authorization}
			if c.tenant != "" {
				header = append(header, "x-tenant", c.tenant)
			}
			for range 2 { // the password is proven in the second round
				code, body, _, err := callHTTP(t, "http://"+web, nil, header...)
				if err != nil || c.want == "" && code != 200 || c.want != "" && (code != 401 || body != c.want) {
					t.Errorf("HTTP: %d %q %v", code, body, err)
				}
				err = callGRPC(t, rpc, insecure.NewCredentials(), header...)
				if status.Code(err) != c.code || status.Convert(err).Message() != c.want {
					t.Errorf("gRPC: %v", err)
				}
			}
		})
	}
}

// If one token has tenants, a token without any is a mistake: it would have all.
func TestInvalidTenantsOfCredentials(t *testing.T) {
	for content, want := range map[string]string{
		"one acme\n\n# two\ntwo\n": "tokens:4: token without tenants, while others have some; add its tenants after a space, or * for all",
		"one\ntwo acme\n":          "tokens:1: token without tenants",
		"one acme,,globex\n":       `tokens:1: "" is not a valid tenant name`,
		"one f\xc3\xbcr\n":         "tokens:1: ",
	} {
		tokens, _ := credentialFiles(t, content)
		cfg := server.DefaultHTTPConfig("localhost:0")
		cfg.Auth = pipeline.Present(authConfig(tokens, ""))
		s, err := server.NewHTTP(secureSettings(time.Now), "http", cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", content, err)
		}
	}
	for _, tenants := range [][]string{nil, {""}, {"acme", " a"}} {
		c := authConfig("", "users")
		c.UserTenants = map[string][]string{"ann": tenants}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), `user "ann": `) {
			t.Errorf("%q: %v", tenants, err)
		}
	}
	c := authConfig("tokens", "")
	c.UserTenants = map[string][]string{"ann": {"acme"}}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "requires htpasswd_file") {
		t.Error(err)
	}
}

// warnings returns how often a listener warned that its clients can name any tenant.
func warnings(logs *observer.ObservedLogs) int {
	return logs.FilterMessageSnippet("clients can name any tenant").Len()
}

// A listener that separates tenants warns at the start if credentials do not.
func TestWarningOfCredentialsForAllTenants(t *testing.T) {
	for _, c := range []struct {
		tokens      string
		userTenants map[string][]string
		tenancy     bool
		want        int
	}{
		{"one\n", nil, true, 1},
		{"one acme\n", nil, true, 1}, // for the user
		{"one\n", map[string][]string{"ann": {"acme"}}, true, 1},
		{"one acme\n", map[string][]string{"ann": {"acme"}}, true, 0},
		{"one *\n", map[string][]string{"ann": {"*"}}, true, 0},
		{"one\n", nil, false, 0},
	} {
		tokens, users := credentialFiles(t, c.tokens)
		core, logs := observer.New(zap.WarnLevel)
		set := secureSettings(time.Now)
		set.Logger = zap.New(core)
		startHTTP(t, set, func(h *server.HTTPConfig) {
			a := authConfig(tokens, users)
			a.UserTenants = c.userTenants
			h.Auth = pipeline.Present(a)
			h.Tenancy = pipeline.Present(server.TenancyConfig{Enabled: c.tenancy, Header: "x-tenant"})
		})
		if n := warnings(logs); n != c.want {
			t.Errorf("%+v: %d warnings", c, n)
		}
	}
}

// The same holds for certificates of clients, unless clients also need other credentials.
func TestWarningOfCertificatesForAllTenants(t *testing.T) {
	_, files, _, _ := authority(t)
	tokens, _ := credentialFiles(t, "one acme\n")
	for _, c := range []struct {
		name                    string
		clientCA, auth, tenancy bool
		tenants                 []string
		want                    int
	}{
		{"client certificates", true, false, true, nil, 1},
		{"client certificates, two tenants", true, false, true, []string{"acme", "globex"}, 1},
		{"client certificates, one tenant", true, false, true, []string{"acme"}, 0},
		{"no client certificates", false, false, true, nil, 0},
		{"no tenants", true, false, false, nil, 0},
		{"tokens with tenants", true, true, true, nil, 0},
	} {
		core, logs := observer.New(zap.WarnLevel)
		set := secureSettings(time.Now)
		set.Logger = zap.New(core)
		startHTTP(t, set, func(h *server.HTTPConfig) {
			tc := server.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, MinVersion: "1.2"}
			if c.clientCA {
				tc.ClientCAFile = files.CA
			}
			if c.auth {
				h.Auth = pipeline.Present(authConfig(tokens, ""))
			}
			h.TLS = pipeline.Present(tc)
			h.Tenancy = pipeline.Present(server.TenancyConfig{Enabled: c.tenancy, Header: "x-tenant", Tenants: c.tenants})
		})
		if n := warnings(logs); n != c.want {
			t.Errorf("%s: %d warnings, want %d", c.name, n, c.want)
		}
	}
}

// A token file that loses its tenants while the listener runs is not accepted in silence.
func TestWarningAfterReload(t *testing.T) {
	tokens, _ := credentialFiles(t, "one acme\n")
	var offset atomic.Int64
	core, logs := observer.New(zap.WarnLevel)
	set := secureSettings(func() time.Time { return time.Now().Add(time.Duration(offset.Load())) })
	set.Logger = zap.New(core)
	web := startHTTP(t, set, func(h *server.HTTPConfig) {
		h.Auth = pipeline.Present(authConfig(tokens, ""))
		h.Tenancy = pipeline.Present(server.TenancyConfig{Enabled: true, Header: "x-tenant"})
	})
	if err := os.WriteFile(tokens, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	offset.Add(int64(time.Hour))
	code, body, _, err := callHTTP(t, "http://"+web, nil, "authorization", "Bearer one", "x-tenant", "globex")
	if n := warnings(logs); err != nil || code != 200 || n != 1 {
		t.Errorf("%d %s %v, %d warnings", code, body, err, n)
	}
}
