package kafka

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// listTopics connects with a configuration and returns the number of partitions of "spans".
func listTopics(t *testing.T, c ClientConfig) (int, error) {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	conn, err := NewConnection(testSettings(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(append(conn.Options(), kgo.RequestRetries(0))...)
	if err != nil {
		t.Fatal(err)
	}
	topics, err := kadm.NewClient(cl).ListTopics(t.Context(), "spans")
	cl.Close()
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return len(topics["spans"].Partitions), err
}

func TestPlaintext(t *testing.T) {
	c := DefaultClientConfig()
	c.Brokers = newCluster(t).ListenAddrs()
	c.TLS = pipeline.Present(client.TLSConfig{Insecure: true}) // as in configurations of the Collector
	if n, err := listTopics(t, c); err != nil || n != 3 {
		t.Errorf("%d partitions, %v", n, err)
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	cluster := newCluster(t, kfake.TLS(&tls.Config{Certificates: server.TLS.Certificates}))
	block := client.DefaultTLSConfig()
	block.CAFile = writeFile(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	c := DefaultClientConfig()
	c.Brokers = cluster.ListenAddrs()
	c.TLS = pipeline.Present(block)
	if n, err := listTopics(t, c); err != nil || n != 3 {
		t.Errorf("%d partitions, %v", n, err)
	}
	c.TLS = pipeline.Present(client.DefaultTLSConfig())
	if _, err := listTopics(t, c); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server with an unknown authority was accepted: %v", err)
	}
}

func TestSASL(t *testing.T) {
	for _, mechanism := range []string{plainMechanism, scram256Mechanism, scram512Mechanism} {
		t.Run(mechanism, func(t *testing.T) {
			cluster := newCluster(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "user", "secret"))
			login := SASLConfig{Mechanism: mechanism, Username: "user", PasswordFile: writeFile(t, "password", "secret\n")}
			c := DefaultClientConfig()
			c.Brokers = cluster.ListenAddrs()
			c.Auth.SASL = pipeline.Present(login)
			if n, err := listTopics(t, c); err != nil || n != 3 {
				t.Errorf("%d partitions, %v", n, err)
			}
			login.PasswordFile, login.Password = "", "wrong"
			c.Auth.SASL = pipeline.Present(login)
			if _, err := listTopics(t, c); err == nil {
				t.Error("logged in with a wrong password")
			}
		})
	}
}

// acceptTokens makes a cluster accept OAUTHBEARER with any token. It returns the last login.
func acceptTokens(cluster *kfake.Cluster) (login *string) {
	login = new(string)
	cluster.Control(func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		switch r := r.(type) {
		case *kmsg.SASLHandshakeRequest:
			response := r.ResponseKind().(*kmsg.SASLHandshakeResponse)
			response.SupportedMechanisms = []string{oauthMechanism}
			if r.Mechanism != oauthMechanism {
				response.ErrorCode = kerr.UnsupportedSaslMechanism.Code
			}
			return response, nil, true
		case *kmsg.SASLAuthenticateRequest:
			*login = string(r.SASLAuthBytes)
			return r.ResponseKind(), nil, true
		}
		return nil, nil, false
	})
	return login
}

func TestOAuthTokenFile(t *testing.T) {
	cluster := newCluster(t)
	login := acceptTokens(cluster)
	c := DefaultClientConfig()
	c.Brokers = cluster.ListenAddrs()
	c.Auth.SASL = pipeline.Present(SASLConfig{Mechanism: oauthMechanism, OAuth: OAuthConfig{
		TokenFile: writeFile(t, "token", "t0ken\n"), Extensions: map[string]string{"logicalCluster": "lkc-1"}}})
	if n, err := listTopics(t, c); err != nil || n != 3 {
		t.Errorf("%d partitions, %v", n, err)
	}
	if want := "n,,\x01auth=Bearer t0ken\x01logicalCluster=lkc-1\x01\x01"; *login != want {
		t.Errorf("login %q, want %q", *login, want)
	}
}

func TestOAuthTokenURL(t *testing.T) {
	requests := 0
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		id, secret, _ := r.BasicAuth()
		if id != "id%3A1" || secret != "s%26cret" || r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "a b" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client","error_description":"no such client"}`) //nolint:errcheck // the client reports it
			return
		}
		fmt.Fprintf(w, `{"access_token":"issued%d","token_type":"bearer","expires_in":60}`, requests) //nolint:errcheck // the client reports it
	}))
	defer issuer.Close()
	cluster := newCluster(t)
	login := acceptTokens(cluster)
	source := OAuthConfig{TokenURL: issuer.URL, ClientID: "id:1", ClientSecret: "s&cret", Scopes: []string{"a", "b"},
		TLS: client.DefaultTLSConfig()}
	c := DefaultClientConfig()
	c.Brokers = cluster.ListenAddrs()
	c.Auth.SASL = pipeline.Present(SASLConfig{Mechanism: oauthMechanism, OAuth: source})
	if n, err := listTopics(t, c); err != nil || n != 3 || !strings.Contains(*login, "Bearer issued1\x01") {
		t.Errorf("%d partitions, login %q, %v", n, *login, err)
	}

	source.ClientSecret = "wrong"
	c.Auth.SASL = pipeline.Present(SASLConfig{Mechanism: oauthMechanism, OAuth: source})
	_, err := listTopics(t, c)
	if err == nil || !strings.Contains(err.Error(), "status 401: invalid_client no such client") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("error %v", err)
	}
}

// TestOAuthTokenIsKept checks that a token is used until shortly before it expires.
func TestOAuthTokenIsKept(t *testing.T) {
	requests := 0
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		if got, want := r.Header.Get("Authorization"), "Basic "+base64.StdEncoding.EncodeToString([]byte("id:secret")); got != want {
			t.Errorf("authorization %q, want %q", got, want)
		}
		fmt.Fprintf(w, `{"access_token":"issued%d","expires_in":300}`, requests) //nolint:errcheck // the client reports it
	}))
	defer issuer.Close()
	set, now := testSettings(), time.Unix(1000, 0)
	set.Env.Now = func() time.Time { return now }
	tokens, err := newTokenIssuer(set, OAuthConfig{TokenURL: issuer.URL, ClientID: "id", ClientSecret: "secret",
		TLS: client.DefaultTLSConfig()})
	if err != nil {
		t.Fatal(err)
	}
	if err := tokens.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer tokens.stop(t.Context()) //nolint:errcheck // it closes idle connections
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, "issued1"}, {269 * time.Second, "issued1"}, {2 * time.Second, "issued2"}} {
		now = now.Add(step.after)
		if got, err := tokens.current(t.Context()); err != nil || got != step.want {
			t.Errorf("after %s: token %q, want %q, %v", step.after, got, step.want, err)
		}
	}
}

func TestUnreachable(t *testing.T) {
	cluster := newCluster(t)
	c := DefaultClientConfig()
	c.Brokers = cluster.ListenAddrs()
	cluster.Close()
	if _, err := listTopics(t, c); Reason(err) != ReasonUnreachable {
		t.Errorf("reason %q of %v", Reason(err), err)
	}
}

// TestConnectTimeout checks that an attempt ends although the network never answers.
func TestConnectTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := testSettings()
		set.Env.Dial = blockingDial
		conn, err := NewConnection(set, DefaultClientConfig())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := conn.dial(t.Context(), "tcp", "broker:9092"); err == nil {
			t.Error("connected to nothing")
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("took %s", took)
		}
	})
}
