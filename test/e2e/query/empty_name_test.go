package query_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/internal/wire/api_v3"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// A span without a name has the same name in all APIs, raw or not.
func TestEmptySpanName(t *testing.T) {
	p := inprocess.Start(t)
	const trace = "0102030405060708090a0b0c0d0e0f10"
	if code, answer := p.PostOTLP("application/json", harness.JSONSpan(trace, "shop", "", time.Now(), time.Second)); code != http.StatusOK {
		t.Fatal(code, answer)
	}
	for _, path := range []string{"/api/traces/%s", "/api/traces/%s?raw=true", "/api/v3/traces/%s", "/api/v3/traces/%s?rawTraces=true",
		"/tempo/api/traces/%s", "/api/ui/v1/outline/%s"} {
		if _, body := harness.Fetch(t, p.QueryURL()+fmt.Sprintf(path, trace)); !bytes.Contains(body, []byte(otlpdata.EmptySpanName)) {
			t.Errorf("%s: %s", path, body)
		}
	}
	conn, err := grpc.NewClient(p.Addr("query", "grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the test has ended
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, raw := range []bool{false, true} {
		v2, err := api_v2.NewQueryServiceClient(conn).GetTrace(ctx,
			&api_v2.GetTraceRequest{TraceId: []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, RawTraces: raw})
		checkName(t, fmt.Sprint("v2, raw ", raw), err, func() (proto.Message, error) { return v2.Recv() })
		v3, err := api_v3.NewQueryServiceClient(conn).GetTrace(ctx, &api_v3.GetTraceRequest{TraceId: trace, RawTraces: raw})
		checkName(t, fmt.Sprint("v3, raw ", raw), err, func() (proto.Message, error) { return v3.Recv() })
	}
}

func checkName(t *testing.T, what string, err error, receive func() (proto.Message, error)) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	m, err := receive()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if b, err := proto.Marshal(m); err != nil || !bytes.Contains(b, []byte(otlpdata.EmptySpanName)) {
		t.Errorf("%s: %v", what, m)
	}
}
