package broker

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tracing-backend/tracing/test/engines/process"
)

// Credentials of the listener with TLS.
const (
	User     = "spans"
	Password = "spans-secret"
)

// replicas is the maximum replication factor of the topics that Kafka keeps for itself.
const replicas = 3

// minInSync is the number of replicas that have a record before it is acknowledged, of topics
// that do not set it.
const minInSync = 2

// settings are the same for all brokers and all tests. A broker is missed after three seconds
// instead of nine, consumers may ask for a session as short, and groups do not wait for the first
// members.
const settings = `
process.roles=broker,controller
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
group.min.session.timeout.ms=3000
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
offsets.topic.num.partitions=6
transaction.state.log.num.partitions=3
num.network.threads=2
num.io.threads=4
log.cleaner.dedupe.buffer.size=2097152
log.retention.check.interval.ms=5000
log.segment.delete.delay.ms=1000
`

// secureSettings are those of the listener with TLS and SASL. Its tokens for OAUTHBEARER have no
// signature.
const secureSettings = `
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_%[1]s="%[2]s";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;
ssl.keystore.type=PEM
ssl.keystore.location=%[3]s
`

// logging is the configuration of the log of a broker.
const logging = `
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss.SSS} %p %m (%c{1})%n
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
`

// properties returns the configuration of a broker.
func (n *node) properties(all []*node, o Options) string {
	voters := make([]string, len(all))
	for i, v := range all {
		voters[i] = fmt.Sprintf("%d@%s", v.id, process.LocalAddr(v.controller))
	}
	listeners, advertised := "PLAINTEXT://"+n.addr(), ""
	text := settings
	if o.Secure {
		// The name in the certificate is localhost.
		advertised = ",SASL_SSL://" + n.secureAddr()
		listeners += fmt.Sprintf(",SASL_SSL://%s", process.LocalAddr(n.secure))
		text += fmt.Sprintf(secureSettings, User, Password, filepath.Join(filepath.Dir(n.dir), keystore))
	}
	factor := min(replicas, len(all))
	for _, line := range []string{
		fmt.Sprintf("node.id=%d", n.id),
		"controller.quorum.voters=" + strings.Join(voters, ","),
		"listeners=" + listeners + ",CONTROLLER://" + process.LocalAddr(n.controller),
		"advertised.listeners=PLAINTEXT://" + n.addr() + advertised,
		"log.dirs=" + filepath.Join(n.dir, "data"),
		fmt.Sprintf("min.insync.replicas=%d", min(minInSync, len(all))),
		fmt.Sprintf("offsets.topic.replication.factor=%d", factor),
		fmt.Sprintf("transaction.state.log.replication.factor=%d", factor),
		fmt.Sprintf("transaction.state.log.min.isr=%d", min(minInSync, len(all))),
	} {
		text += line + "\n"
	}
	return text
}

// configure writes the files of a broker.
func (n *node) configure(all []*node, o Options) error {
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(n.dir, "log4j2.properties"), []byte(logging), 0o644); err != nil {
		return err
	}
	return os.WriteFile(n.config(), []byte(n.properties(all, o)), 0o600)
}

// keystore is the file with the key and the certificate of the listener with TLS.
const keystore = "keystore.pem"

// writeKeystore joins key.pem and cert.pem in a folder.
func writeKeystore(dir string) error {
	var all [][]byte
	for _, name := range []string{"key.pem", "cert.pem"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		all = append(all, b)
	}
	return os.WriteFile(filepath.Join(dir, keystore), bytes.Join(all, nil), 0o600)
}

// newClusterID returns a random id as Kafka writes it.
func newClusterID() string {
	var id [16]byte
	rand.Read(id[:]) //nolint:errcheck // never fails
	return base64.RawURLEncoding.EncodeToString(id[:])
}
