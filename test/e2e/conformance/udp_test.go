package conformance_test

import (
	"context"
	"net"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/receivers/thriftudp"
	"github.com/tracing-backend/tracing/test/harness"
)

func thriftUDPReceiver(t *testing.T) {
	pipelinetest.Receiver(t, thriftudp.Factory(), pipelinetest.ReceiverOptions{
		Config:     `compact: {endpoint: "localhost:0"}`,
		Listener:   "compact",
		Unanswered: true,
		Normalize:  thriftContent,
		Send: func(ctx context.Context, addr string, td ptrace.Traces) error {
			conn, err := new(net.Dialer).DialContext(ctx, "udp", addr)
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = conn.Write(harness.Datagram(t, jaegerBatch(td)))
			return err
		},
	})
}
