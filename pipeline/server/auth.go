package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/bcrypt"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/certs"
)

// defaultReload is the default interval at which certificate and credential files are checked for
// changes.
const defaultReload = pipeline.Duration(10e9)

// AuthConfig is the block `auth`. If both files are set, clients may use either method.
type AuthConfig struct {
	BearerTokensFile string `yaml:"bearer_tokens_file" doc:"File with the accepted tokens, one per line. Clients send a token in the header Authorization: Bearer TOKEN."`
	HtpasswdFile     string `yaml:"htpasswd_file" doc:"File with users and bcrypt password hashes for basic authentication, as written by htpasswd -B."`
}

// Validate checks that at least one file is set.
func (c *AuthConfig) Validate() error {
	if c.BearerTokensFile == "" && c.HtpasswdFile == "" {
		return pipeline.BadKey("", "must have bearer_tokens_file, htpasswd_file or both")
	}
	return nil
}

// secrets holds the contents of the files of an AuthConfig.
type secrets struct {
	tokens map[[sha256.Size]byte]bool // by hash, so that lookup time reveals nothing about a token
	users  map[string][]byte          // bcrypt hashes
	// verified holds the hashes of valid basic credentials. Clients send credentials with each
	// request, and bcrypt is deliberately slow.
	verified      sync.Map
	verifiedCount atomic.Int64
}

// maxVerified bounds the cache of verified credentials: one password can be encoded in several
// ways.
const maxVerified = 10_000

type authenticator struct {
	config AuthConfig
	files  *certs.Reloader[*secrets]
	bcrypt sync.Mutex // held during bcrypt, so that password guessing uses at most one CPU
}

func newAuthenticator(set pipeline.Settings, c AuthConfig) *authenticator {
	a := &authenticator{config: c}
	a.files = certs.NewReloader([]string{c.BearerTokensFile, c.HtpasswdFile}, reloadOptions(set, "credentials", defaultReload), a.parse)
	return a
}

func (a *authenticator) load() error { return a.files.Load() }

func (a *authenticator) parse(contents [][]byte) (*secrets, error) {
	s := &secrets{tokens: map[[sha256.Size]byte]bool{}, users: map[string][]byte{}}
	for line := range bytes.Lines(contents[0]) {
		if token := bytes.TrimSpace(line); len(token) > 0 && token[0] != '#' {
			s.tokens[sha256.Sum256(token)] = true
		}
	}
	n := 0
	for line := range bytes.Lines(contents[1]) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		user, hash, ok := bytes.Cut(line, []byte(":"))
		if _, err := bcrypt.Cost(hash); !ok || err != nil {
			return nil, fmt.Errorf("%s:%d: not a user with a bcrypt hash; create one with htpasswd -B", a.config.HtpasswdFile, n)
		}
		s.users[string(user)] = hash
	}
	if len(s.tokens)+len(s.users) == 0 {
		return nil, errors.New("no token and no user found, so no client could authenticate; add at least one")
	}
	return s, nil
}

// check verifies the values of the header Authorization. The error is a *[Denied].
func (a *authenticator) check(values []string) error {
	none := &Denied{ReasonUnauthenticated, "no " + a.method() + " auth provided"}
	if len(values) != 1 {
		return none
	}
	s := a.files.Get()
	scheme, rest, _ := strings.Cut(values[0], " ")
	switch {
	case strings.EqualFold(scheme, "Bearer") && a.config.BearerTokensFile != "":
		if s.tokens[sha256.Sum256([]byte(strings.TrimSpace(rest)))] {
			return nil
		}
	case strings.EqualFold(scheme, "Basic") && a.config.HtpasswdFile != "":
		if a.checkBasic(s, strings.TrimSpace(rest)) {
			return nil
		}
	default:
		return none
	}
	return &Denied{ReasonUnauthenticated, "invalid credentials"}
}

// method returns the authentication method named in errors and challenges.
func (a *authenticator) method() string {
	if a.config.HtpasswdFile == "" {
		return "bearer"
	}
	return "basic"
}

// challenge returns the value of the HTTP header WWW-Authenticate.
func (a *authenticator) challenge() string {
	if a.method() == "bearer" {
		return "Bearer"
	}
	return `Basic realm="tracing"`
}

// checkBasic reports whether encoded, the base64 form of user:password, is valid.
func (a *authenticator) checkBasic(s *secrets, encoded string) bool {
	sum := sha256.Sum256([]byte(encoded))
	if _, ok := s.verified.Load(sum); ok {
		return true
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return false
	}
	user, password, _ := bytes.Cut(decoded, []byte(":"))
	hash, ok := s.users[string(user)]
	if !ok {
		return false
	}
	a.bcrypt.Lock()
	defer a.bcrypt.Unlock()
	if bcrypt.CompareHashAndPassword(hash, password) != nil {
		return false
	}
	if s.verifiedCount.Add(1) <= maxVerified {
		s.verified.Store(sum, true)
	}
	return true
}
