package kafka

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

const (
	// tokenTimeout is the maximum time for one request to the token endpoint.
	tokenTimeout = 10 * time.Second
	// tokenMargin is the time before its expiry at which a token is replaced.
	tokenMargin = 30 * time.Second
)

// tokenIssuer requests tokens for client credentials, and keeps one until it is about to expire.
type tokenIssuer struct {
	cfg    OAuthConfig
	http   *client.HTTP
	secret *secret
	now    func() time.Time

	mu      sync.Mutex // held during requests, so that there is one at a time
	token   string
	expires time.Time
}

func newTokenIssuer(set pipeline.Settings, c OAuthConfig) (*tokenIssuer, error) {
	hc := client.DefaultHTTPConfig()
	hc.Endpoint, hc.TLS, hc.Compression = c.TokenURL, c.TLS, client.CompressionNone
	h, err := client.NewHTTP(set, hc)
	if err != nil {
		return nil, err
	}
	return &tokenIssuer{cfg: c, http: h, secret: newSecret(set, c.ClientSecret, c.ClientSecretFile), now: set.Env.Now}, nil
}

func (t *tokenIssuer) start(ctx context.Context) error {
	if err := t.secret.load(); err != nil {
		return fmt.Errorf("client_secret_file: %w", err)
	}
	return t.http.Start(ctx)
}

func (t *tokenIssuer) stop(ctx context.Context) error { return t.http.Stop(ctx) }

// current returns a token that is valid for a while.
func (t *tokenIssuer) current(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != "" && t.now().Before(t.expires) {
		return t.token, nil
	}
	token, valid, err := t.request(ctx)
	if err != nil {
		return "", fmt.Errorf("token endpoint %s: %w", t.cfg.TokenURL, err)
	}
	t.token, t.expires = token, t.now().Add(valid-min(tokenMargin, valid/2))
	return token, nil
}

// request requests a token and returns the time for which it is valid; 0 if the endpoint does not
// say.
func (t *tokenIssuer) request(ctx context.Context) (token string, valid time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(t.cfg.Scopes) > 0 {
		form.Set("scope", strings.Join(t.cfg.Scopes, " "))
	}
	credentials := url.QueryEscape(t.cfg.ClientID) + ":" + url.QueryEscape(t.secret.get())
	response, err := t.http.Post(ctx, t.cfg.TokenURL, http.Header{
		"Content-Type":  {"application/x-www-form-urlencoded"},
		"Accept":        {"application/json"},
		"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))},
	}, [][]byte{[]byte(form.Encode())})
	if err != nil {
		return "", 0, err
	}
	var answer struct {
		Token   string  `json:"access_token"`
		Expires float64 `json:"expires_in"` // seconds
		Error   string  `json:"error"`
		Reason  string  `json:"error_description"`
	}
	parseErr := json.Unmarshal(response.Body, &answer)
	switch {
	case response.Status != http.StatusOK:
		return "", 0, fmt.Errorf("status %d: %s %s", response.Status, answer.Error, answer.Reason)
	case parseErr != nil:
		return "", 0, fmt.Errorf("invalid response: %w", parseErr)
	case answer.Token == "":
		return "", 0, errors.New("response has no access_token")
	}
	return answer.Token, time.Duration(min(max(answer.Expires, 0), maxTokenSeconds)) * time.Second, nil
}

// maxTokenSeconds is the maximum time for which a token is kept, in seconds.
const maxTokenSeconds = 24 * 3600
