package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/certs"
	"github.com/tracing-backend/tracing/pipeline/server/internal/listen"
	"github.com/tracing-backend/tracing/pipeline/server/internal/password"
)

// defaultReload is the default interval at which certificate and credential files are checked for
// changes.
const defaultReload = pipeline.Duration(10e9)

// AuthConfig is the block `auth`. If both files are set, clients may use either method.
type AuthConfig struct {
	BearerTokensFile string              `yaml:"bearer_tokens_file" path:"file" doc:"File with one token per line, for the header Authorization: Bearer TOKEN. After a space, a line may list the tenants of its token, separated by commas, or * for all. If one line does, all must; otherwise each token is for all tenants."`
	HtpasswdFile     string              `yaml:"htpasswd_file" path:"file" doc:"File with users and bcrypt password hashes for basic authentication, as written by htpasswd -B."`
	UserTenants      map[string][]string `yaml:"user_tenants" doc:"Tenants of each user in htpasswd_file, or * for all. If set, users who are not listed have no tenant; otherwise each user has all tenants."`
	PasswordChecks   password.Config     `yaml:"password_checks" doc:"Limits on the work for passwords and on password guessing."`
}

// DefaultAuthConfig returns a config without files, and with limits on password checks that are
// safe on an open network.
func DefaultAuthConfig() AuthConfig { return AuthConfig{PasswordChecks: password.DefaultConfig()} }

// Validate checks that at least one file is set, and the tenants of users.
func (c *AuthConfig) Validate() error {
	if c.BearerTokensFile == "" && c.HtpasswdFile == "" {
		return pipeline.BadKey("", "must have bearer_tokens_file, htpasswd_file or both")
	}
	if len(c.UserTenants) > 0 && c.HtpasswdFile == "" {
		return pipeline.BadKey("user_tenants", "requires htpasswd_file, the file with the users")
	}
	var errs []error
	for user, tenants := range c.UserTenants {
		if err := grant(tenants).check(); err != nil {
			errs = append(errs, pipeline.BadKey("user_tenants", "user %q: %v", user, err))
		}
	}
	return errors.Join(errs...)
}

// secrets holds the contents of the files of an AuthConfig.
type secrets struct {
	tokens map[[sha256.Size]byte]grant // by hash, so that lookup time reveals nothing about a token
	users  *password.Users
}

type authenticator struct {
	config     AuthConfig
	forTenants bool // whether the listener has several tenants
	log        *zap.Logger
	files      *certs.Reloader[*secrets]
	users      *password.Users // last parsed; used by parse only
	passwords  *password.Checker
}

func newAuthenticator(set pipeline.Settings, listener string, c AuthConfig) (*authenticator, error) {
	a := &authenticator{config: c, log: set.Logger}
	a.files = certs.NewReloader([]string{c.BearerTokensFile, c.HtpasswdFile}, reloadOptions(set, "credentials", defaultReload), a.parse)
	if c.HtpasswdFile == "" {
		return a, nil
	}
	var err error
	a.passwords, err = password.New(c.PasswordChecks, set.Env.Now, listen.Labeled(set.Metrics, listener))
	return a, err
}

func (a *authenticator) load() error { return a.files.Load() }

// stop ends the password checks that requests wait for.
func (a *authenticator) stop() {
	if a.passwords != nil {
		a.passwords.Stop()
	}
}

func (a *authenticator) parse(contents [][]byte) (*secrets, error) {
	s := &secrets{}
	var err error
	if s.tokens, err = parseTokens(a.config.BearerTokensFile, contents[0]); err != nil {
		return nil, err
	}
	if s.users, err = password.Parse(a.config.HtpasswdFile, contents[1], a.config.PasswordChecks.MaxCost, a.users); err != nil {
		return nil, err
	}
	if len(s.tokens)+s.users.Len() == 0 {
		return nil, errors.New("no token and no user found, so no client could authenticate; add at least one")
	}
	a.users = s.users
	if a.forTenants {
		a.warnOfTenants(s)
	}
	return s, nil
}

// identity is the client that a request claims to come from.
type identity struct {
	tenants grant
	login   *login // nil if the credentials are proven
}

// login is a request whose password must be compared with a hash.
type login struct {
	auth         *authenticator
	users        *password.Users
	client, user string
	password     []byte
	denied       *Denied // answer if the password is right; nil if the request is accepted
}

// check verifies the Authorization header of a client's request. It does not block. If the password
// must be compared, the identity has a login that decides. The error is a *[Denied].
func (a *authenticator) check(client string, header func(name string) []string) (identity, error) {
	none := &Denied{Reason: ReasonUnauthenticated, Msg: "no " + a.method() + " auth provided"}
	values := header("authorization")
	if len(values) != 1 {
		return identity{}, none
	}
	s := a.files.Get()
	scheme, rest, _ := strings.Cut(values[0], " ")
	switch {
	case strings.EqualFold(scheme, "Bearer") && a.config.BearerTokensFile != "":
		tenants, ok := s.tokens[sha256.Sum256([]byte(strings.TrimSpace(rest)))]
		if !ok {
			return identity{}, errInvalid
		}
		return identity{tenants: tenants}, nil
	case strings.EqualFold(scheme, "Basic") && a.config.HtpasswdFile != "":
		decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(rest))
		if err != nil {
			return identity{}, errInvalid
		}
		user, password, _ := bytes.Cut(decoded, []byte(":"))
		who := identity{tenants: a.tenantsOf(string(user))}
		if !s.users.Proven(string(user), password) {
			who.login = &login{auth: a, users: s.users, client: client, user: string(user), password: password}
		}
		return who, nil
	}
	return identity{}, none
}

var errInvalid = &Denied{Reason: ReasonUnauthenticated, Msg: "invalid credentials"}

// wait compares the password, or waits until another request has done so. The error is a *[Denied].
func (l *login) wait(ctx context.Context) error {
	err := l.auth.passwords.Check(ctx, l.users, l.client, l.user, l.password)
	var delayed *password.DelayedError
	switch {
	case err == nil && l.denied != nil:
		return l.denied
	case err == nil:
		return nil
	case errors.Is(err, password.ErrWrong):
		return errInvalid
	case errors.As(err, &delayed) && delayed.Failures:
		return &Denied{Reason: ReasonPasswordDelay, Msg: err.Error(), RetryAfter: delayed.After}
	case errors.As(err, &delayed):
		return &Denied{Reason: ReasonPasswordLimit, Msg: err.Error(), RetryAfter: delayed.After}
	case errors.Is(err, password.ErrStopping):
		return &Denied{Reason: ReasonStopping, Msg: err.Error(), RetryAfter: time.Second}
	}
	// The client no longer waits for the response.
	return &Denied{Reason: ReasonIncomplete, Msg: err.Error(), RetryAfter: time.Second}
}

// method returns the authentication method named in errors and challenges.
func (a *authenticator) method() string {
	if a.config.HtpasswdFile == "" {
		return "bearer"
	}
	return "basic"
}

// challenge returns the value of the WWW-Authenticate header. For the scheme Basic, a browser opens
// a dialog even if a script sent the request. Scripts ask for credentials themselves, so they get a
// scheme that browsers do not know.
func (a *authenticator) challenge(scripted bool) string {
	switch {
	case a.method() == "bearer":
		return "Bearer"
	case scripted:
		return `X-Basic realm="tracing"`
	}
	return `Basic realm="tracing"`
}
