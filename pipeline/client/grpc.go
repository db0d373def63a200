package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/certs"
	"github.com/tracing-backend/tracing/pipeline/selftrace"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// GRPCConfig is the configuration of a gRPC connection. Keys that also exist in the OpenTelemetry
// Collector have the same names.
type GRPCConfig struct {
	Endpoint string `yaml:"endpoint" doc:"Address of the server: host:port, dns:///host:port, or a list of host:port, separated by commas. Requests are balanced over all servers."`
	GRPCSettings
}

// GRPCSettings are the settings of a gRPC connection to any server.
type GRPCSettings struct {
	TLS             TLSConfig                     `yaml:"tls" doc:"TLS settings of the connection."`
	Compression     string                        `yaml:"compression" doc:"Compression of requests: gzip, zstd, snappy or none."`
	Headers         map[string]pipeline.Secret    `yaml:"headers" doc:"Headers of every request."`
	Auth            pipeline.Optional[AuthConfig] `yaml:"auth" doc:"Authentication of requests."`
	Keepalive       KeepaliveConfig               `yaml:"keepalive" doc:"Detection of dead connections."`
	BalancerName    string                        `yaml:"balancer_name" doc:"Load balancing: round_robin (all addresses) or pick_first (one address as long as it works)."`
	WaitForReady    bool                          `yaml:"wait_for_ready" doc:"Whether requests wait for a connection instead of failing immediately."`
	Authority       string                        `yaml:"authority" doc:"Value of the :authority header. If empty, the endpoint is used."`
	ConnectTimeout  pipeline.Duration             `yaml:"connect_timeout" doc:"Maximum time for one connection attempt, with TLS handshake."`
	ReadBufferSize  pipeline.ByteSize             `yaml:"read_buffer_size" doc:"Size of the read buffer per connection."`
	WriteBufferSize pipeline.ByteSize             `yaml:"write_buffer_size" doc:"Size of the write buffer per connection."`
}

// Connector is implemented by configurations of components with connections that no field of type
// [GRPCConfig] describes, for example because one block configures connections to several servers.
type Connector interface {
	// Connections returns these connections.
	Connections() []GRPCConfig
}

// KeepaliveConfig is the block `keepalive`.
type KeepaliveConfig struct {
	Time                pipeline.Duration `yaml:"time" doc:"Time without activity after which the client pings the server, at least 10s. 0 disables pings."`
	Timeout             pipeline.Duration `yaml:"timeout" doc:"Time to wait for the response to a ping before the connection is closed."`
	PermitWithoutStream bool              `yaml:"permit_without_stream" doc:"Whether to ping without open requests. Servers may close connections because of it."`
}

const (
	// MaxResponse is the maximum size in bytes of a response to a request with spans. Such
	// responses are short.
	MaxResponse        = 64 << 10
	maxResponseHeaders = 64 << 10 // bytes
	maxReconnectDelay  = 15 * time.Second
	maxBuffer          = 64 << 20 // bytes
)

// CompressionNone is the value of `compression` that disables compression.
const CompressionNone = "none"

// DefaultGRPCConfig returns a config with TLS, gzip and round_robin balancing, and without an
// endpoint.
func DefaultGRPCConfig() GRPCConfig {
	return GRPCConfig{GRPCSettings: GRPCSettings{
		TLS:             defaultTLS(),
		Compression:     "gzip",
		Keepalive:       KeepaliveConfig{Time: pipeline.Duration(10 * time.Second), Timeout: pipeline.Duration(10 * time.Second)},
		BalancerName:    "round_robin",
		ConnectTimeout:  pipeline.Duration(10 * time.Second),
		ReadBufferSize:  32 << 10,
		WriteBufferSize: 512 << 10,
	}}
}

// Validate reports an invalid endpoint.
func (c *GRPCConfig) Validate() error {
	if _, err := c.target(); err != nil {
		return pipeline.BadKey("endpoint", "%v", err)
	}
	return nil
}

// Validate reports invalid values and combinations.
func (c *GRPCSettings) Validate() error {
	var errs []error
	if balancers := []string{"round_robin", "pick_first"}; !slices.Contains(balancers, c.BalancerName) {
		errs = append(errs, pipeline.BadKey("balancer_name", "unknown balancer %q; use %s", c.BalancerName, strings.Join(balancers, " or ")))
	}
	if c.Keepalive.Time > 0 && c.Keepalive.Timeout <= 0 {
		errs = append(errs, pipeline.BadKey("keepalive::timeout", "must be above 0 while pings are enabled"))
	}
	for key, size := range map[string]pipeline.ByteSize{"read_buffer_size": c.ReadBufferSize, "write_buffer_size": c.WriteBufferSize} {
		if size > maxBuffer {
			errs = append(errs, pipeline.BadKey(key, "must be at most %s", pipeline.ByteSize(maxBuffer)))
		}
	}
	return errors.Join(append(errs, validateCompression(c.Compression), validateHeaders(c.Headers, c.Auth),
		validateConnectTimeout(c.ConnectTimeout))...)
}

func validateConnectTimeout(d pipeline.Duration) error {
	if d <= 0 {
		return pipeline.BadKey("connect_timeout", "must be above 0, because an unreachable server would otherwise block requests forever")
	}
	return nil
}

// target is a parsed endpoint: either a name to resolve by DNS or a list of addresses.
type target struct {
	name  string
	addrs []string
}

var errNoEndpoint = errors.New("must be set; write host:port, for example localhost:4317")

func (c *GRPCConfig) target() (target, error) {
	if c.Endpoint == "" {
		return target{}, errNoEndpoint
	}
	if strings.ContainsAny(c.Endpoint, "@?") {
		return target{}, errors.New("must not contain a user name, a password or a query, because addresses are logged; use headers instead")
	}
	if strings.HasPrefix(c.Endpoint, "dns:") {
		u, err := url.Parse(c.Endpoint)
		if err != nil || CheckAddress(strings.TrimPrefix(u.Path, "/")) != nil {
			return target{}, fmt.Errorf("%q is not a DNS target; write dns:///host:port", c.Endpoint)
		}
		return target{name: c.Endpoint}, nil
	}
	rest := c.Endpoint
	for scheme, insecure := range map[string]bool{"http://": true, "https://": false} {
		bare, ok := strings.CutPrefix(c.Endpoint, scheme)
		if !ok {
			continue
		}
		if rest = strings.TrimSuffix(bare, "/"); c.TLS.Insecure != insecure {
			return target{}, fmt.Errorf("%s contradicts tls::insecure: %t; write host:port without a scheme",
				scheme, c.TLS.Insecure)
		}
	}
	var t target
	for addr := range strings.SplitSeq(rest, ",") {
		addr = strings.TrimSpace(addr)
		if err := CheckAddress(addr); err != nil {
			return target{}, err
		}
		host, port, _ := pipeline.SplitHostPort(addr) // CheckAddress has checked it
		t.addrs = append(t.addrs, net.JoinHostPort(host, port))
	}
	return t, nil
}

// CheckAddress reports an address that is not host:port with a port above 0.
func CheckAddress(addr string) error {
	host, port, err := pipeline.SplitHostPort(addr)
	if err == nil && host != "" && !strings.ContainsAny(host, "/ ") {
		if n, perr := strconv.ParseUint(port, 10, 16); perr == nil && n > 0 {
			return nil
		}
	}
	return fmt.Errorf("%q is not a valid address; write host:port, for example localhost:4317", addr)
}

// GRPC is a connection to one or more servers. It connects on Start and reconnects automatically.
// Calls fail with Unavailable while no server is connected, unless wait_for_ready is set. GRPC
// implements [grpc.ClientConnInterface] and is safe for concurrent use after Start.
type GRPC struct {
	set     pipeline.Settings
	cfg     GRPCConfig
	target  target
	tls     *certs.TLSSource // nil if plaintext
	headers headers
	opts    []grpc.DialOption
	conn    *grpc.ClientConn
}

var (
	_ grpc.ClientConnInterface = (*GRPC)(nil)
	_ pipeline.Starter         = (*GRPC)(nil)
	_ pipeline.Stopper         = (*GRPC)(nil)
)

// NewGRPC returns a connection that opens on Start. opts are added to the options derived from cfg.
func NewGRPC(set pipeline.Settings, cfg GRPCConfig, opts ...grpc.DialOption) (*GRPC, error) {
	server.RegisterCompressors()
	c := &GRPC{set: set, cfg: cfg, opts: opts, headers: newHeaders(set, cfg.Headers, cfg.Auth)}
	var err error
	if c.target, err = cfg.target(); err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	if !cfg.TLS.Insecure {
		if c.tls, err = cfg.TLS.source(set, "h2"); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Start reads certificates and tokens and starts connecting. It does not wait for the server.
func (c *GRPC) Start(context.Context) error {
	if err := c.headers.load(); err != nil {
		return err
	}
	creds := insecure.NewCredentials()
	if c.tls != nil {
		if err := c.tls.Load(); err != nil {
			return fmt.Errorf("tls: %w", err)
		}
		creds = reloadingCreds{credentials.NewTLS(c.tls.Config()), c.tls}
	} else if c.headers.secret {
		c.set.Logger.Warn("sending the credentials of auth in plaintext, because tls::insecure is true")
	}
	name, opts := c.resolve()
	opts = append(append(opts, c.options()...), grpc.WithTransportCredentials(creds))
	conn, err := grpc.NewClient(name, append(opts, c.opts...)...)
	if err != nil {
		return fmt.Errorf("endpoint %s: %w", c.cfg.Endpoint, err)
	}
	c.conn = conn
	conn.Connect()
	return nil
}

// resolve returns the gRPC target and, for a list of addresses, its resolver. With a list, the
// authority of calls is the first address, and TLS handshakes use the address of the connection.
func (c *GRPC) resolve() (name string, opts []grpc.DialOption) {
	addrs := c.target.addrs
	switch len(addrs) {
	case 0:
		return c.target.name, nil
	case 1:
		return "dns:///" + addrs[0], nil
	}
	var state resolver.State
	for _, a := range addrs {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a, ServerName: a}}})
	}
	list := manual.NewBuilderWithScheme("list")
	list.InitialState(state)
	return "list:///" + addrs[0], []grpc.DialOption{grpc.WithResolvers(list)}
}

func (c *GRPC) options() []grpc.DialOption {
	call := []grpc.CallOption{grpc.WaitForReady(c.cfg.WaitForReady), grpc.MaxCallRecvMsgSize(MaxResponse),
		grpc.MaxCallSendMsgSize(math.MaxInt32)}
	if c.cfg.Compression != CompressionNone && c.cfg.Compression != "" {
		call = append(call, grpc.UseCompressor(c.cfg.Compression))
	}
	reconnect := backoff.DefaultConfig
	reconnect.MaxDelay = maxReconnectDelay
	opts := []grpc.DialOption{
		grpc.WithDefaultCallOptions(call...),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return c.set.Env.Dial(ctx, "tcp", addr) }),
		grpc.WithDefaultServiceConfig(fmt.Sprintf(`{"loadBalancingConfig": [{%q: {}}]}`, c.cfg.BalancerName)),
		grpc.WithDisableServiceConfig(), // DNS records must not override the configuration
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: c.cfg.ConnectTimeout.Std()}),
		grpc.WithMaxHeaderListSize(maxResponseHeaders),
		grpc.WithReadBufferSize(int(c.cfg.ReadBufferSize)),
		grpc.WithWriteBufferSize(int(c.cfg.WriteBufferSize)),
		grpc.WithUserAgent(userAgent(c.set)),
	}
	if c.cfg.Authority != "" {
		opts = append(opts, grpc.WithAuthority(c.cfg.Authority))
	}
	if k := c.cfg.Keepalive; k.Time > 0 {
		opts = append(opts, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: k.Time.Std(), Timeout: k.Timeout.Std(),
			PermitWithoutStream: k.PermitWithoutStream}))
	}
	return opts
}

// userAgent returns the name and version of this program.
func userAgent(set pipeline.Settings) string {
	if set.Process == nil {
		return "tracing"
	}
	return strings.TrimSuffix("tracing/"+set.Process.Build().Version, "/")
}

// AwaitChange waits until the state of the connection differs from before, or ctx ends, and returns
// the state. An idle connection reconnects. AwaitChange must be called after Start.
func (c *GRPC) AwaitChange(ctx context.Context, before connectivity.State) connectivity.State {
	c.conn.WaitForStateChange(ctx, before)
	state := c.conn.GetState()
	if state == connectivity.Idle {
		c.conn.Connect()
	}
	return state
}

// Stop closes the connection. Open calls fail.
func (c *GRPC) Stop(context.Context) error {
	if err := c.conn.Close(); err != nil {
		return fmt.Errorf("closing connection to %s: %w", c.cfg.Endpoint, err)
	}
	return nil
}

// Invoke makes a call with the configured headers. Errors are gRPC statuses.
func (c *GRPC) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	ctx, span := c.set.Tracer.StartClient(ctx, method[1:])
	err := c.conn.Invoke(c.withHeaders(ctx), method, args, reply, opts...)
	selftrace.End(span, err)
	return err
}

// NewStream starts a streaming call with the configured headers. Errors are gRPC statuses.
func (c *GRPC) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.conn.NewStream(c.withHeaders(ctx), desc, method, opts...)
}

func (c *GRPC) withHeaders(ctx context.Context) context.Context {
	h := c.headers.current()
	if c.set.Tracer.On() {
		trace := propagation.MapCarrier{}
		c.set.Tracer.Inject(ctx, trace)
		h = slices.Clone(h)
		for k, v := range trace {
			h = append(h, k, v)
		}
	}
	if len(h) > 0 {
		return metadata.AppendToOutgoingContext(ctx, h...)
	}
	return ctx
}

// reloadingCreds uses the current certificates for each handshake.
type reloadingCreds struct {
	credentials.TransportCredentials // for methods that do not use certificates
	source                           *certs.TLSSource
}

// ClientHandshake implements credentials.TransportCredentials.
func (r reloadingCreds) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	cfg := r.source.Config()
	if cfg.ServerName != "" {
		authority = cfg.ServerName
	}
	return credentials.NewTLS(cfg).ClientHandshake(ctx, authority, conn)
}

// Clone implements credentials.TransportCredentials. It returns r, which is immutable.
func (r reloadingCreds) Clone() credentials.TransportCredentials { return r }
