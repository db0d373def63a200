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

// defaultReload is how old what is known of certificates, tokens and passwords may be.
const defaultReload = pipeline.Duration(10e9)

// AuthConfig are the keys below `auth`. With both files a client may use either way.
type AuthConfig struct {
	BearerTokensFile string `yaml:"bearer_tokens_file" doc:"File with the accepted tokens, one a line, for the header Authorization: Bearer TOKEN."`
	HtpasswdFile     string `yaml:"htpasswd_file" doc:"File of users and bcrypt hashes as htpasswd -B writes it, for basic authentication."`
}

// Validate checks that there is a way to come in.
func (c *AuthConfig) Validate() error {
	if c.BearerTokensFile == "" && c.HtpasswdFile == "" {
		return pipeline.BadKey("", "needs bearer_tokens_file, htpasswd_file or both")
	}
	return nil
}

// secrets are the contents of the files of an AuthConfig.
type secrets struct {
	tokens map[[sha256.Size]byte]bool // of hashes, so that the time of a look-up tells nothing about a token
	users  map[string][]byte          // bcrypt hashes
	// proven are the hashes of basic credentials that were right: bcrypt is slow on purpose, and clients send them with each request.
	proven      sync.Map
	provenCount atomic.Int64
}

// maxProven bounds the credentials that are remembered as right: one user can have several spellings of one password.
const maxProven = 10_000

type authenticator struct {
	config AuthConfig
	files  *certs.Follower[*secrets]
	slow   sync.Mutex // one bcrypt at a time, so that guessing costs one processor at most
}

func newAuthenticator(set pipeline.Settings, c AuthConfig) *authenticator {
	a := &authenticator{config: c}
	a.files = certs.Follow([]string{c.BearerTokensFile, c.HtpasswdFile}, follow(set, "credentials", defaultReload), a.parse)
	return a
}

func (a *authenticator) load() error { return a.files.Load() }

func (a *authenticator) parse(contents [][]byte) (*secrets, error) {
	c := &secrets{tokens: map[[sha256.Size]byte]bool{}, users: map[string][]byte{}}
	for line := range bytes.Lines(contents[0]) {
		if token := bytes.TrimSpace(line); len(token) > 0 && token[0] != '#' {
			c.tokens[sha256.Sum256(token)] = true
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
			return nil, fmt.Errorf("%s:%d: not a user with a bcrypt hash; make one with htpasswd -B", a.config.HtpasswdFile, n)
		}
		c.users[string(user)] = hash
	}
	if len(c.tokens)+len(c.users) == 0 {
		return nil, errors.New("the files hold no token and no user: nobody could come in")
	}
	return c, nil
}

// check looks at the values of the header Authorization.
func (a *authenticator) check(values []string) error {
	none := &Denied{ReasonUnauthenticated, "no " + a.way() + " auth provided"}
	if len(values) != 1 {
		return none
	}
	c := a.files.Get()
	scheme, rest, _ := strings.Cut(values[0], " ")
	switch {
	case strings.EqualFold(scheme, "Bearer") && a.config.BearerTokensFile != "":
		if c.tokens[sha256.Sum256([]byte(strings.TrimSpace(rest)))] {
			return nil
		}
	case strings.EqualFold(scheme, "Basic") && a.config.HtpasswdFile != "":
		if a.basic(c, strings.TrimSpace(rest)) {
			return nil
		}
	default:
		return none
	}
	return &Denied{ReasonUnauthenticated, "invalid credentials"}
}

func (a *authenticator) way() string {
	if a.config.HtpasswdFile == "" {
		return "bearer"
	}
	return "basic"
}

// challenge is the value of the header WWW-Authenticate of an HTTP answer.
func (a *authenticator) challenge() string {
	if a.way() == "bearer" {
		return "Bearer"
	}
	return `Basic realm="tracing"`
}

func (a *authenticator) basic(c *secrets, encoded string) bool {
	sum := sha256.Sum256([]byte(encoded))
	if _, ok := c.proven.Load(sum); ok {
		return true
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return false
	}
	user, password, _ := bytes.Cut(decoded, []byte(":"))
	hash, ok := c.users[string(user)]
	if !ok {
		return false
	}
	a.slow.Lock()
	defer a.slow.Unlock()
	if bcrypt.CompareHashAndPassword(hash, password) != nil {
		return false
	}
	if c.provenCount.Add(1) <= maxProven {
		c.proven.Store(sum, true)
	}
	return true
}
