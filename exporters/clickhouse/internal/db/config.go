package db

import (
	"errors"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// Config holds the keys of a connection.
type Config struct {
	Endpoints      []string                            `yaml:"endpoints" doc:"Addresses, host:port, of servers that hold the same data or belong to one cluster. Statements are distributed over them; an unreachable server is left out for up to 30 s."`
	Protocol       string                              `yaml:"protocol" doc:"Protocol of the servers: native (usually port 9000, with TLS 9440) or http (usually port 8123, with TLS 8443)."`
	Database       string                              `yaml:"database" doc:"Name of the database that holds the tables. It is created if it does not exist."`
	Username       string                              `yaml:"username" doc:"Name of the user."`
	Password       pipeline.Secret                     `yaml:"password" doc:"Password of the user."`
	PasswordFile   string                              `yaml:"password_file" path:"file" doc:"File with the password. It is reread when it changes."`
	TokenFile      string                              `yaml:"token_file" path:"file" doc:"File with a JSON Web Token, which is sent instead of a name and a password. It is reread when it changes. Needs TLS."`
	TLS            pipeline.Optional[client.TLSConfig] `yaml:"tls" doc:"TLS settings. Without the block, connections are not encrypted."`
	Compression    string                              `yaml:"compression" doc:"Compression of blocks on the connection: lz4, zstd or none."`
	ConnectTimeout pipeline.Duration                   `yaml:"connect_timeout" doc:"Maximum time for one connection attempt, with TLS handshake and login, and to wait for a free connection."`
	MaxConnections int                                 `yaml:"max_connections" doc:"Maximum number of connections to each server."`
	MaxInserts     int                                 `yaml:"max_inserts" doc:"Maximum number of concurrent inserts. Others wait."`
	InsertQuorum   string                              `yaml:"insert_quorum" doc:"Number of replicas that must have an insert before it is acknowledged: a number, or auto (the majority of three or more replicas, one of two). Empty means auto if the tables are replicated."`
	Query          QueryConfig                         `yaml:"query" doc:"Limits of one statement that reads."`
}

// QueryConfig limits one statement that reads.
type QueryConfig struct {
	Timeout   pipeline.Duration `yaml:"timeout" doc:"Maximum time of the statement on the server. A shorter deadline of the query applies, too."`
	MaxMemory pipeline.ByteSize `yaml:"max_memory" doc:"Maximum memory of the statement on each server. 0 leaves the limit to the server."`
	MaxRows   int64             `yaml:"max_rows" doc:"Maximum number of rows that the statement reads. 0 disables the limit."`
}

// Values of Config.Protocol.
const (
	Native = "native"
	HTTP   = "http"
)

// QuorumAuto is the value of Config.InsertQuorum for the majority of three or more replicas, or one
// of two.
const QuorumAuto = "auto"

// DefaultConfig returns the configuration of a server on this machine.
func DefaultConfig() Config {
	return Config{
		Endpoints: []string{"localhost:9000"}, Protocol: Native, Database: "tracing", Username: "default",
		TLS: pipeline.Absent(client.DefaultTLSConfig()), Compression: "lz4", ConnectTimeout: pipeline.Duration(5 * time.Second),
		MaxConnections: 32, MaxInserts: 4,
		Query: QueryConfig{Timeout: pipeline.Duration(time.Minute), MaxMemory: 4 << 30},
	}
}

// Validate checks values beyond their types.
func (c *Config) Validate() error {
	errs := c.validateEndpoints()
	if c.Protocol != Native && c.Protocol != HTTP {
		errs = append(errs, pipeline.BadKey("protocol", "%q is not one of %s, %s", c.Protocol, Native, HTTP))
	}
	if !databaseName.MatchString(c.Database) {
		errs = append(errs, pipeline.BadKey("database", "%q is not a name of letters, digits, _ and single hyphens", c.Database))
	}
	if _, ok := compressions()[c.Compression]; !ok {
		errs = append(errs, pipeline.BadKey("compression", "%q is not one of lz4, zstd, none", c.Compression))
	}
	if n, err := strconv.Atoi(c.InsertQuorum); c.InsertQuorum != "" && c.InsertQuorum != QuorumAuto && (err != nil || n < 1) {
		errs = append(errs, pipeline.BadKey("insert_quorum", "%q is neither a positive number nor %s", c.InsertQuorum, QuorumAuto))
	}
	for _, limit := range []struct {
		key   string
		value int64
	}{{"connect_timeout", int64(c.ConnectTimeout)}, {"max_connections", int64(c.MaxConnections)}, {"max_inserts", int64(c.MaxInserts)},
		{"query::timeout", int64(c.Query.Timeout)}} {
		if limit.value <= 0 {
			errs = append(errs, pipeline.BadKey(limit.key, "must be above 0"))
		}
	}
	if c.MaxInserts > c.MaxConnections {
		errs = append(errs, pipeline.BadKey("max_inserts", "must not exceed max_connections, which is %d", c.MaxConnections))
	}
	if c.Query.MaxRows < 0 {
		errs = append(errs, pipeline.BadKey("query::max_rows", "must not be negative"))
	}
	return errors.Join(append(errs, c.validateSecrets()...)...)
}

// databaseName matches names that the client understands in inserts and that are not macros in
// paths of replicated tables.
var databaseName = regexp.MustCompile(`^[A-Za-z0-9_]+(-[A-Za-z0-9_]+)*$`)

func (c *Config) validateEndpoints() []error {
	if len(c.Endpoints) == 0 {
		return []error{pipeline.BadKey("endpoints", "must not be empty")}
	}
	var errs []error
	for _, e := range c.Endpoints {
		host, port, err := net.SplitHostPort(e)
		if n, perr := strconv.ParseUint(port, 10, 16); err != nil || host == "" || perr != nil || n == 0 {
			errs = append(errs, pipeline.BadKey("endpoints", "%q is not host:port", e))
		}
	}
	return errs
}

func (c *Config) validateSecrets() []error {
	var errs []error
	if c.Password != "" && c.PasswordFile != "" {
		errs = append(errs, pipeline.BadKey("password_file", "contradicts password; remove one of them"))
	}
	if c.TokenFile == "" {
		return errs
	}
	if c.Password != "" || c.PasswordFile != "" {
		errs = append(errs, pipeline.BadKey("token_file", "contradicts password and password_file; remove one of them"))
	}
	if tls, on := c.TLS.Get(); !on || tls.Insecure {
		errs = append(errs, pipeline.BadKey("token_file", "needs the block tls, because servers accept tokens only over TLS"))
	}
	return errs
}

func compressions() map[string]clickhouse.CompressionMethod {
	return map[string]clickhouse.CompressionMethod{
		"lz4": clickhouse.CompressionLZ4, "zstd": clickhouse.CompressionZSTD, "none": clickhouse.CompressionNone,
	}
}

// Quote quotes an identifier.
func Quote(name string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(name) + "`"
}
