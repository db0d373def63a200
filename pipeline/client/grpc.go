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

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/certs"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// GRPCConfig are the keys of a gRPC connection outwards, named as in the OpenTelemetry Collector where it has them.
type GRPCConfig struct {
	Endpoint        string                     `yaml:"endpoint" doc:"Where to connect: host:port, dns:///host:port, or several host:port with commas between them; all addresses share the load."`
	TLS             TLSConfig                  `yaml:"tls" doc:"How the connection is secured."`
	Compression     string                     `yaml:"compression" doc:"gzip, zstd, snappy or none."`
	Headers         map[string]pipeline.Secret `yaml:"headers" doc:"Headers to send with every request; values are never shown."`
	Auth            AuthConfig                 `yaml:"auth" doc:"How requests prove who sends them."`
	Keepalive       KeepaliveConfig            `yaml:"keepalive" doc:"How a dead connection is found."`
	BalancerName    string                     `yaml:"balancer_name" doc:"round_robin spreads requests over all addresses, pick_first uses one as long as it works."`
	WaitForReady    bool                       `yaml:"wait_for_ready" doc:"Let requests wait for a connection until they time out, instead of failing while there is none."`
	Authority       string                     `yaml:"authority" doc:"Value of the :authority header; empty is the endpoint's."`
	ConnectTimeout  pipeline.Duration          `yaml:"connect_timeout" doc:"How long one attempt to connect may take, TLS included."`
	ReadBufferSize  pipeline.ByteSize          `yaml:"read_buffer_size" doc:"Buffer for reading, per connection."`
	WriteBufferSize pipeline.ByteSize          `yaml:"write_buffer_size" doc:"Buffer for writing, per connection."`
}

// KeepaliveConfig are the keys below `keepalive`.
type KeepaliveConfig struct {
	Time                pipeline.Duration `yaml:"time" doc:"Ping after so long without any sign of the server, at least 10s; 0: never."`
	Timeout             pipeline.Duration `yaml:"timeout" doc:"Close the connection when a ping is not answered for so long."`
	PermitWithoutStream bool              `yaml:"permit_without_stream" doc:"Ping while no request is open, too; servers may take that for an attack."`
}

// Limits of what a server may answer, and of waiting for it.
const (
	// MaxAnswer is the greatest body of an answer that is read, in bytes: answers to spans say little.
	MaxAnswer         = 64 << 10
	maxAnswerHeaders  = 64 << 10
	maxReconnectDelay = 15 * time.Second
	maxBuffer         = 64 << 20
)

// None is the value of `compression` that sends as it is.
const None = "none"

// DefaultGRPCConfig returns the defaults: TLS, gzip, and balancing over all addresses. There is no endpoint.
func DefaultGRPCConfig() GRPCConfig {
	return GRPCConfig{
		TLS:             defaultTLS(),
		Compression:     "gzip",
		Keepalive:       KeepaliveConfig{Time: pipeline.Duration(10 * time.Second), Timeout: pipeline.Duration(10 * time.Second)},
		BalancerName:    "round_robin",
		ConnectTimeout:  pipeline.Duration(10 * time.Second),
		ReadBufferSize:  32 << 10,
		WriteBufferSize: 512 << 10,
	}
}

// Validate reports values that cannot work.
func (c *GRPCConfig) Validate() error {
	var errs []error
	if _, err := c.target(); err != nil {
		errs = append(errs, pipeline.BadKey("endpoint", "%v", err))
	}
	if balancers := []string{"round_robin", "pick_first"}; !slices.Contains(balancers, c.BalancerName) {
		errs = append(errs, pipeline.BadKey("balancer_name", "%q is not a balancer; write %s", c.BalancerName, strings.Join(balancers, " or ")))
	}
	if c.Keepalive.Time > 0 && c.Keepalive.Timeout <= 0 {
		errs = append(errs, pipeline.BadKey("keepalive::timeout", "must be above 0, or every ping would be one too late"))
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
		return pipeline.BadKey("connect_timeout", "must be above 0, or a connection to nowhere would be waited for without end")
	}
	return nil
}

// target is an endpoint that was taken apart: one name that is resolved by DNS, or a list of addresses.
type target struct {
	name  string
	addrs []string
}

var errNoEndpoint = errors.New("must be set; write host:port, for example localhost:4317")

func (c *GRPCConfig) target() (target, error) {
	if c.Endpoint == "" {
		return target{}, errNoEndpoint
	}
	if strings.HasPrefix(c.Endpoint, "dns:") {
		u, err := url.Parse(c.Endpoint)
		if err != nil || checkHostPort(strings.TrimPrefix(u.Path, "/")) != nil {
			return target{}, fmt.Errorf("%q is no name for DNS; write dns:///host:port", c.Endpoint)
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
			return target{}, fmt.Errorf("%s and tls::insecure: %t contradict each other; write host:port, tls::insecure decides",
				scheme, c.TLS.Insecure)
		}
	}
	var t target
	for addr := range strings.SplitSeq(rest, ",") {
		addr = strings.TrimSpace(addr)
		if err := checkHostPort(addr); err != nil {
			return target{}, err
		}
		t.addrs = append(t.addrs, addr)
	}
	return t, nil
}

func checkHostPort(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err == nil && host != "" && !strings.ContainsAny(host, "/ ") {
		if n, perr := strconv.ParseUint(port, 10, 16); perr == nil && n > 0 {
			return nil
		}
	}
	return fmt.Errorf("%q is not an address; write host:port, for example localhost:4317", addr)
}

// GRPC is a connection to one or several servers. It connects when it starts and again whenever it has to; calls fail as Unavailable while
// it cannot. It is a [grpc.ClientConnInterface].
type GRPC struct {
	set     pipeline.Settings
	cfg     GRPCConfig
	target  target
	tls     *certs.Source // nil: plain text
	headers headers
	opts    []grpc.DialOption
	conn    *grpc.ClientConn
}

var (
	_ grpc.ClientConnInterface = (*GRPC)(nil)
	_ pipeline.Starter         = (*GRPC)(nil)
	_ pipeline.Stopper         = (*GRPC)(nil)
)

// NewGRPC makes a connection that is not open yet. opts are added to the options that cfg stands for.
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

// Start reads certificates and tokens and begins to connect; it does not wait for the server.
func (c *GRPC) Start(context.Context) error {
	if err := c.headers.load(); err != nil {
		return err
	}
	creds := insecure.NewCredentials()
	if c.tls != nil {
		if err := c.tls.Load(); err != nil {
			return fmt.Errorf("tls: %w", err)
		}
		creds = followingCreds{credentials.NewTLS(c.tls.Config()), c.tls}
	} else if c.headers.token != nil {
		c.set.Logger.Warn("auth::bearer_token_file is sent in plain text, because tls::insecure is true")
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

// resolve returns what gRPC calls a target, and how to find its addresses. Of a list, calls name the first address as their authority,
// and handshakes the one that they are with.
func (c *GRPC) resolve() (name string, opts []grpc.DialOption) {
	addrs := c.target.addrs
	switch len(addrs) {
	case 0:
		return c.target.name, nil
	case 1:
		return "dns:///" + addrs[0], nil
	}
	var all resolver.State
	for _, a := range addrs {
		all.Endpoints = append(all.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a, ServerName: a}}})
	}
	list := manual.NewBuilderWithScheme("list")
	list.InitialState(all)
	return "list:///" + addrs[0], []grpc.DialOption{grpc.WithResolvers(list)}
}

func (c *GRPC) options() []grpc.DialOption {
	call := []grpc.CallOption{grpc.WaitForReady(c.cfg.WaitForReady), grpc.MaxCallRecvMsgSize(MaxAnswer),
		grpc.MaxCallSendMsgSize(math.MaxInt32)}
	if c.cfg.Compression != None && c.cfg.Compression != "" {
		call = append(call, grpc.UseCompressor(c.cfg.Compression))
	}
	reconnect := backoff.DefaultConfig
	reconnect.MaxDelay = maxReconnectDelay
	opts := []grpc.DialOption{
		grpc.WithDefaultCallOptions(call...),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return c.set.Env.Dial(ctx, "tcp", addr) }),
		grpc.WithDefaultServiceConfig(fmt.Sprintf(`{"loadBalancingConfig": [{%q: {}}]}`, c.cfg.BalancerName)),
		grpc.WithDisableServiceConfig(), // DNS must not change how requests are sent
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: c.cfg.ConnectTimeout.Std()}),
		grpc.WithMaxHeaderListSize(maxAnswerHeaders),
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

// userAgent says what program sends.
func userAgent(set pipeline.Settings) string {
	if set.Process == nil {
		return "tracing"
	}
	return strings.TrimSuffix("tracing/"+set.Process.Build().Version, "/")
}

// Stop closes the connection. Calls that are still open fail.
func (c *GRPC) Stop(context.Context) error {
	if err := c.conn.Close(); err != nil {
		return fmt.Errorf("closing the connection to %s: %w", c.cfg.Endpoint, err)
	}
	return nil
}

// Invoke makes a call with the configured headers. Errors are gRPC statuses.
func (c *GRPC) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return c.conn.Invoke(c.withHeaders(ctx), method, args, reply, opts...)
}

// NewStream begins a streaming call with the configured headers.
func (c *GRPC) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.conn.NewStream(c.withHeaders(ctx), desc, method, opts...)
}

func (c *GRPC) withHeaders(ctx context.Context) context.Context {
	if h := c.headers.now(); len(h) > 0 {
		return metadata.AppendToOutgoingContext(ctx, h...)
	}
	return ctx
}

// followingCreds takes the certificates as they are at each handshake.
type followingCreds struct {
	credentials.TransportCredentials // for what does not depend on certificates
	source                           *certs.Source
}

// ClientHandshake secures a connection to the server of that authority.
func (f followingCreds) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	cfg := f.source.Config()
	if cfg.ServerName != "" {
		authority = cfg.ServerName
	}
	return credentials.NewTLS(cfg).ClientHandshake(ctx, authority, conn)
}

// Clone returns f, which nobody can change.
func (f followingCreds) Clone() credentials.TransportCredentials { return f }
