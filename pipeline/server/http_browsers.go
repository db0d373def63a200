package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// Checks that protect listeners from web pages of other origins in the browsers of their users:
//
//   - The host that a request names must be one of the listener's. Otherwise a page whose own host
//     name resolves to this machine (DNS rebinding) could read and write as if the listener were
//     its origin.
//   - A request that changes state must not come from a page of another origin, unless CORS allows
//     the origin. Browsers send some POST requests without asking first.
//   - A privileged request needs credentials, or must come from this machine and not from a proxy
//     on it, whose clients can be anywhere.
//
// gRPC listeners need none of them: browsers do not send the content type of gRPC without asking
// first, speak HTTP/2 with TLS only, and then a rebound name does not match the certificate.

// checkBrowser returns the refusal of a request, or nil.
func (s *HTTP) checkBrowser(r *http.Request) *Denied {
	if s.hosts.checked(s.acceptor.isLoopback()) && !s.hosts.allow(r.Host) {
		return &Denied{Reason: ReasonHost, Msg: fmt.Sprintf(
			"host %.100q is not allowed here; add it to allowed_hosts of this listener, or use localhost or an IP address", hostName(r.Host))}
	}
	privileged := s.privileged(r)
	if d := s.checkOrigin(r, privileged || s.unsafe(r)); d != nil {
		return d
	}
	if privileged && !s.authenticates && !s.isLocal(r) {
		return &Denied{Reason: ReasonPrivileged, Msg: "this path needs credentials, because other machines can reach its listener; " +
			"set auth or tls::client_ca_file of this listener, or send the request to localhost on the machine or in the container " +
			"of the process, without a proxy"}
	}
	return nil
}

// checkOrigin refuses a state-changing request from a web page of another origin. All methods
// except GET, HEAD and OPTIONS change state; with unsafe, these do too.
func (s *HTTP) checkOrigin(r *http.Request, unsafe bool) *Denied {
	checked := r
	if unsafe {
		checked = r.WithContext(r.Context())
		checked.Method = http.MethodPost
	}
	if s.origins.Check(checked) == nil || s.trustsOrigin(r) {
		return nil
	}
	return &Denied{Reason: ReasonCrossOrigin, Msg: fmt.Sprintf("web pages of other origins may not send this request (origin %.100q); "+
		"if this listener serves the page through a proxy, let it pass on the host of its clients (nginx: proxy_set_header Host $http_host); "+
		"if the page is yours, add its origin to cors::allowed_origins of this listener", r.Header.Get("Origin"))}
}

// isLocal reports whether a request was sent to a loopback address by a client that addressed it as
// such. This excludes web pages whose host name resolves to a loopback address, and proxies, whose
// clients may be elsewhere.
func (s *HTTP) isLocal(r *http.Request) bool {
	if slices.ContainsFunc(proxyHeaders, func(name string) bool { return len(r.Header[name]) > 0 }) {
		return false
	}
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return s.acceptor.isLoopback() || ok && isLoopback(addr) && s.hosts.allow(r.Host)
}

// proxyHeaders are the headers in which proxies name themselves or their clients.
var proxyHeaders = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"}

func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// refuseBrowser responds to a request that checkBrowser refused.
func (s *HTTP) refuseBrowser(w http.ResponseWriter, r *http.Request, d *Denied) {
	s.acceptor.refusals.Warn("refused request by its host, origin or path", zap.String("reason", d.Reason),
		zap.String("client", s.acceptor.security.proxies.describe(r.RemoteAddr, r.Header.Values)),
		zap.String("path", tracedText(r.URL.Path)), zap.String("remedy", d.Msg))
	s.deny(w, r, d)
}

// hosts are the host names by which clients address a listener.
type hosts struct {
	names      []string // lower case; with * or *. at the start for any or for subdomains
	configured bool
}

func newHosts(cfg HTTPConfig) hosts {
	h := hosts{configured: len(cfg.AllowedHosts) > 0}
	if name, _, err := pipeline.SplitHostPort(string(cfg.Endpoint)); err == nil {
		h.names = append(h.names, strings.ToLower(name))
	}
	for _, name := range cfg.AllowedHosts {
		h.names = append(h.names, strings.ToLower(name))
	}
	return h
}

// checked reports whether the listener refuses other hosts. A listener that is open to other
// machines can have many names, which only the user can list.
func (h hosts) checked(loopback bool) bool { return loopback || h.configured }

// allow reports whether a client may name the host, which is a name or address with or without a
// port. Old programs send no host; browsers always do. Names below localhost and internal are
// private: no public DNS has them, so no page has such a host. Containers call their machine
// host.docker.internal.
func (h hosts) allow(host string) bool {
	name := hostName(host)
	if _, err := netip.ParseAddr(name); err == nil || name == "" || name == "localhost" ||
		strings.HasSuffix(name, ".localhost") || strings.HasSuffix(name, ".internal") {
		return true
	}
	return slices.ContainsFunc(h.names, func(allowed string) bool {
		domain, wildcard := strings.CutPrefix(allowed, "*")
		return name == allowed || wildcard && strings.HasSuffix(name, domain)
	})
}

// hostName returns the host in a Host header: in lower case, without port, brackets and final dot.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// checkHosts reports values of allowed_hosts that no Host header can match.
func checkHosts(names []string) error {
	for _, name := range names {
		host := strings.TrimPrefix(strings.TrimPrefix(name, "*"), ".")
		if name == "*" || host != "" && strings.Trim(strings.ToLower(host), "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" &&
			(host == name || strings.HasPrefix(name, "*.")) {
			continue
		}
		return pipeline.BadKey("allowed_hosts", "%q is not a host name; write a name without scheme and port, such as traces.example.com, "+
			"*.example.com for subdomains, or * for all names", name)
	}
	return nil
}
