package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// checkConnections connects to the next hops and stores of the configuration, each with the
// settings of its component. It sends no spans.
func checkConnections(ctx context.Context, x *examination) []Finding {
	if len(x.hops) == 0 {
		return []Finding{newFinding("", Skipped, "no connections to other processes in the configuration")}
	}
	found := make([][]Finding, len(x.hops))
	var all sync.WaitGroup
	for i := range x.hops {
		all.Go(func() { found[i] = x.checkConnection(ctx, &x.hops[i]) })
	}
	all.Wait()
	var out []Finding
	for _, f := range found {
		out = append(out, f...)
	}
	return out
}

// checkConnection checks the addresses of a connection one by one, and then that the server
// responds to requests.
func (x *examination) checkConnection(ctx context.Context, c *connection) []Finding {
	var found []Finding
	reached := 0
	for _, address := range c.addresses() {
		f := x.checkAddress(ctx, c, address)
		if f.Verdict < Problem {
			reached++
		}
		found = append(found, f)
	}
	if reached == 0 {
		return found
	}
	if c.grpc != nil {
		return append(found, x.answerGRPC(ctx, c))
	}
	return append(found, x.answerHTTP(ctx, c))
}

// addresses returns the addresses of a connection as host:port.
func (c *connection) addresses() (all []string) {
	if c.http != nil {
		u, err := url.Parse(c.url)
		if err != nil {
			return nil
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"https": "443"}[u.Scheme]
		}
		if port == "" {
			port = "80"
		}
		return []string{net.JoinHostPort(u.Hostname(), port)}
	}
	endpoint := strings.TrimPrefix(c.grpc.Endpoint, "dns:")
	for _, prefix := range []string{"http://", "https://"} {
		endpoint = strings.TrimPrefix(endpoint, prefix)
	}
	for address := range strings.SplitSeq(strings.Trim(endpoint, "/"), ",") {
		all = append(all, strings.TrimSpace(address))
	}
	return all
}

// encryption returns the TLS settings of a connection, and whether it uses them.
func (c *connection) encryption() (settings client.TLSConfig, on bool) {
	if c.http != nil {
		return c.http.TLS, strings.HasPrefix(c.url, "https://")
	}
	return c.grpc.TLS, !c.grpc.TLS.Insecure
}

// checkAddress resolves the address, connects and makes the TLS handshake.
func (x *examination) checkAddress(ctx context.Context, c *connection, address string) Finding {
	subject := c.String()
	if len(c.addresses()) > 1 {
		subject += " " + address
	}
	host, _, err := pipeline.SplitHostPort(address)
	if err != nil {
		return newFinding(subject, Problem, "%q is not an address", address).advise("write host:port")
	}
	if _, err := x.env.LookupHost(ctx, host); err != nil {
		return newFinding(subject, Problem, "cannot resolve %s: %v", host, err).
			advise("correct the name in the configuration, or the DNS of this host")
	}
	conn, err := x.env.Dial(ctx, "tcp", address)
	if err != nil {
		return newFinding(subject, Problem, "cannot connect: %v", err).
			advise("start the process there, make it listen on an address that this host reaches, and open firewalls for the port")
	}
	defer conn.Close() //nolint:errcheck // only tested
	settings, on := c.encryption()
	if !on {
		return newFinding(subject, OK, "connected without TLS")
	}
	return x.handshake(ctx, subject, conn, settings, host)
}

// handshake makes a TLS handshake with the settings of the component, and judges the certificate.
func (x *examination) handshake(ctx context.Context, subject string, conn net.Conn, settings client.TLSConfig, host string) Finding {
	config, err := x.clientTLS(settings, host)
	if err != nil {
		return newFinding(subject, Problem, "TLS settings cannot be used: %v", err).advise("correct the files in the block tls")
	}
	secure := tls.Client(conn, config)
	err = secure.HandshakeContext(ctx)
	if wrong := (*tls.CertificateVerificationError)(nil); errors.As(err, &wrong) {
		if invalid := (x509.CertificateInvalidError{}); errors.As(wrong.Err, &invalid) && invalid.Reason == x509.Expired {
			return validity(subject, []*x509.Certificate{invalid.Cert}, x.env.Now()).advise("replace the certificate of the server")
		}
		return newFinding(subject, Problem, "certificate of the server is not trusted: %v", wrong.Err).
			advise("set tls::ca_file to the authority that signed it, or tls::server_name_override to a name in it")
	}
	if err != nil {
		return newFinding(subject, Problem, "TLS handshake failed: %v", err).
			advise("check that the server uses TLS on this port (otherwise set tls::insecure: true), " +
				"and whether it requires a client certificate")
	}
	chain := secure.ConnectionState().PeerCertificates[:1] // with insecure_skip_verify, nothing else matters
	if verified := secure.ConnectionState().VerifiedChains; len(verified) > 0 {
		chain = verified[0]
	}
	f := validity(subject, chain, x.env.Now())
	f.Found = "connected with TLS; " + f.Found
	if f.Verdict > OK {
		return f.advise("replace the certificate of the server")
	}
	return f
}

// clientTLS returns the TLS configuration for connections to a host.
func (x *examination) clientTLS(settings client.TLSConfig, host string) (*tls.Config, error) {
	source, err := client.NewTLS(x.settings(), settings)
	if err != nil {
		return nil, err
	}
	if err := source.Load(); err != nil {
		return nil, err
	}
	config := source.Config().Clone()
	config.NextProtos = []string{"h2", "http/1.1"}
	if config.ServerName == "" {
		config.ServerName = host
	}
	return config, nil
}

// certificateAlert returns the error with which a server ends a TLS connection because of the
// certificate of the client, or nil. It writes nothing after the handshake: a client that writes
// can lose the alert of the server.
func (x *examination) certificateAlert(ctx context.Context, c *connection) error {
	settings, on := c.encryption()
	address := c.addresses()[0]
	host, _, err := pipeline.SplitHostPort(address)
	if err != nil || !on {
		return nil
	}
	config, err := x.clientTLS(settings, host)
	if err != nil {
		return nil
	}
	conn, err := x.env.Dial(ctx, "tcp", address)
	if err != nil {
		return nil
	}
	defer conn.Close() //nolint:errcheck // only tested
	if err := conn.SetDeadline(time.Now().Add(alertTime)); err != nil {
		return nil
	}
	if _, err = tls.Client(conn, config).Read(make([]byte, 1)); err != nil && wantsCertificate(err.Error()) {
		return err
	}
	return nil
}

// alertTime is the maximum time for a handshake and a following alert.
const alertTime = time.Second

// answerGRPC makes a call that changes nothing.
func (x *examination) answerGRPC(ctx context.Context, c *connection) Finding {
	subject := c.String()
	conn, err := client.NewGRPC(x.settings(), *c.grpc)
	if err == nil {
		err = conn.Start(ctx)
	}
	if err != nil {
		return newFinding(subject, Problem, "cannot use the settings: %v", err).advise("correct the block of the component")
	}
	defer conn.Stop(ctx) //nolint:errcheck // only tested
	began := time.Now()
	err = awaitReady(ctx, func(ctx context.Context) error {
		_, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		return err
	})
	took := time.Since(began)
	if status.Code(err) == codes.Unavailable {
		if alert := x.certificateAlert(ctx, c); alert != nil {
			err = status.Error(codes.Unavailable, alert.Error())
		}
	}
	return judgeGRPC(subject, err, took)
}

// callInterval is the time between calls while the connection is being made.
const callInterval = 50 * time.Millisecond

// awaitReady repeats a call that fails because the connection has not been made yet, for up to half
// of the time of ctx.
func awaitReady(ctx context.Context, call func(context.Context) error) error {
	limit := time.Now().Add(time.Minute)
	if deadline, ok := ctx.Deadline(); ok {
		limit = time.Now().Add(time.Until(deadline) / 2)
	}
	for {
		err := call(ctx)
		if status.Code(err) != codes.Unavailable || wantsCertificate(err.Error()) || time.Now().After(limit) {
			return err
		}
		pause(ctx, callInterval)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func judgeGRPC(subject string, err error, took time.Duration) Finding {
	text := status.Convert(err).Message()
	switch code := status.Code(err); code {
	case codes.OK, codes.Unimplemented, codes.NotFound, codes.InvalidArgument:
		return newFinding(subject, OK, "responds to gRPC calls in %s", roundTime(took))
	case codes.Unauthenticated, codes.PermissionDenied:
		return newFinding(subject, Problem, "server refuses the credentials: %s", text).
			advise("set auth or headers of the component as the server requires")
	case codes.ResourceExhausted:
		return newFinding(subject, Warning, "server is overloaded: %s", text).advise("look at the server")
	default:
		f := newFinding(subject, Problem, "no response to a gRPC call: %s: %s", code, text)
		if wantsCertificate(text) {
			return f.advise("set tls::cert_file and tls::key_file to a certificate signed by an authority in client_ca_file of the server")
		}
		return f.advise("check that the port serves gRPC, and that both sides use TLS or both do not")
	}
}

// wantsCertificate reports whether a server ended the connection because the client has no
// certificate from an authority that the server accepts. Since TLS 1.3, the handshake has already
// succeeded for the client by then.
func wantsCertificate(text string) bool {
	return strings.Contains(text, "tls: certificate required") || strings.Contains(text, "tls: bad certificate")
}

// answerHTTP sends a GET request. Most servers respond with an error, which counts as a response,
// unless the error is about the credentials or the path.
func (x *examination) answerHTTP(ctx context.Context, c *connection) Finding {
	subject := c.String()
	conn, err := client.NewHTTP(x.settings(), *c.http)
	if err == nil {
		err = conn.Start(ctx)
	}
	if err != nil {
		return newFinding(subject, Problem, "cannot use the settings: %v", err).advise("correct the block of the component")
	}
	defer conn.Stop(ctx) //nolint:errcheck // only tested
	began := time.Now()
	answer, err := conn.Get(ctx, c.url, maxAnswer)
	if err != nil {
		return newFinding(subject, Problem, "no response to an HTTP request: %v", err).advise("check that the port serves HTTP")
	}
	text := fmt.Sprintf("responds to HTTP requests in %s", roundTime(time.Since(began)))
	if name := answer.Header.Get("Server"); name != "" {
		text += "; server " + name
	}
	switch answer.Status {
	case 401, 403:
		return newFinding(subject, Problem, "server refuses the credentials: status %d", answer.Status).
			advise("set auth or headers of the component as the server requires")
	case 404:
		return newFinding(subject, Warning, "%s; status 404", text).advise("check the path of the URL")
	}
	return newFinding(subject, OK, "%s", text)
}
