package kafka_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/test/engines/kafka/broker"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// secureConfig writes spans to a topic and reads them from it.
const secureConfig = `
receivers:
  otlp: {protocols: {http: {endpoint: "localhost:0"}}}
  kafka: &connection
    brokers: [%[1]s]
    topic: %[2]s
    tls: {ca_file: %[3]q}
    auth: {sasl: %[4]s}
exporters:
  kafka: {<<: *connection, timeout: 5s, retry_on_failure: {enabled: false}}
  memory:
extensions: {query: {storage: memory, http: {endpoint: "localhost:0"}, grpc: {endpoint: "localhost:0"}}}
service:
  data_dir: %[5]q
  extensions: [query]
  pipelines:
    traces/in: {receivers: [otlp], exporters: [kafka]}
    traces/out: {receivers: [kafka], exporters: [memory]}
`

// TestSecure writes and reads spans over TLS with every mechanism of SASL.
func TestSecure(t *testing.T) {
	c := secureBrokers(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(unsignedToken()), 0o600); err != nil {
		t.Fatal(err)
	}
	mechanisms := map[string]string{"OAUTHBEARER": fmt.Sprintf("{mechanism: OAUTHBEARER, oauth: {token_file: %q}}", token)}
	for _, name := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		mechanisms[name] = fmt.Sprintf("{mechanism: %s, username: %s, password: %s}", name, broker.User, broker.Password)
	}
	for name, sasl := range mechanisms {
		t.Run(name, func(t *testing.T) {
			p := startSecure(t, c, sasl)
			spans := testSpans()
			post(t, p, spans)
			awaitStored(t, p, spans)
		})
	}
}

// secureBrokers returns brokers with TLS and SASL.
func secureBrokers(t *testing.T) *broker.Cluster {
	t.Helper()
	c := broker.Shared(t)
	if len(c.SecureBrokers()) == 0 {
		t.Skip("the brokers that " + broker.Variable + " names have unknown users and certificates")
	}
	return c
}

// startSecure starts a program with the keys of auth::sasl.
func startSecure(t *testing.T, c *broker.Cluster, sasl string) *inprocess.Program {
	t.Helper()
	return inprocess.StartYAML(t, fmt.Sprintf(secureConfig, strings.Join(c.SecureBrokers(), ", "), c.Topic(t, partitions),
		filepath.Join(c.Dir(), "cert.pem"), sasl, t.TempDir()))
}

// unsignedToken returns a token that brokers accept which do not check signatures.
func unsignedToken() string {
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	now := time.Now().Unix()
	return encode(`{"alg":"none"}`) + "." + encode(fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, broker.User, now, now+3600)) + "."
}

// TestWrongPassword checks that spans are refused if the brokers do not know the user, and that the
// answer says why.
func TestWrongPassword(t *testing.T) {
	c := secureBrokers(t)
	p := startSecure(t, c, fmt.Sprintf("{mechanism: SCRAM-SHA-512, username: %s, password: wrong}", broker.User))
	body, err := ptraceotlp.NewExportRequestFromTraces(toOTLP(testSpans())).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	status, answer := p.PostOTLP("application/x-protobuf", string(body))
	if status == http.StatusOK || !strings.Contains(strings.ToLower(answer), "auth") {
		t.Errorf("status %d: %s", status, answer)
	}
}
