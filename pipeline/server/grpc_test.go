package server_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionalpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// echoDesc returns a service with the methods Raw, which receives undecoded bytes, and Message, and
// with a stream of messages. Clients send BytesValue to all of them.
func echoDesc(handle func(ctx context.Context, size int) error) *grpc.ServiceDesc {
	run := func(ctx context.Context, req any) (any, error) {
		switch r := req.(type) {
		case *server.Raw:
			return r, handle(ctx, len(*r))
		case *wrapperspb.BytesValue:
			return r, handle(ctx, len(r.Value))
		}
		return nil, errors.New("unexpected request type")
	}
	method := func(name string, alloc func() any) grpc.MethodDesc {
		handler := func(srv any, ctx context.Context, dec func(any) error, in grpc.UnaryServerInterceptor) (any, error) {
			req := alloc()
			if err := dec(req); err != nil {
				return nil, err
			}
			return in(ctx, req, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/test.Echo/" + name}, run)
		}
		return grpc.MethodDesc{MethodName: name, Handler: handler}
	}
	stream := func(_ any, ss grpc.ServerStream) error {
		for {
			m := new(wrapperspb.BytesValue)
			if err := ss.RecvMsg(m); err != nil {
				return nil
			}
			if err := handle(ss.Context(), len(m.Value)); err != nil {
				return err
			}
			if err := ss.SendMsg(m); err != nil {
				return err
			}
		}
	}
	return &grpc.ServiceDesc{
		ServiceName: "test.Echo",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			method("Raw", func() any { return new(server.Raw) }),
			method("Message", func() any { return new(wrapperspb.BytesValue) }),
		},
		Streams: []grpc.StreamDesc{{StreamName: "Stream", ClientStreams: true, ServerStreams: true, Handler: stream}},
	}
}

func grpcConfig() server.GRPCConfig {
	c := server.DefaultGRPCConfig("127.0.0.1:0")
	c.MaxRecvMsgSizeMiB = 1
	return c
}

func (f *fixture) grpc(cfg server.GRPCConfig, handle func(context.Context, int) error) (*grpc.ClientConn, func(context.Context) error) {
	f.t.Helper()
	s, err := server.NewGRPC(f.set, "protocols.grpc", cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	s.RegisterService(echoDesc(handle), nil)
	stop := f.run(s)
	conn, err := grpc.NewClient("passthrough:///server", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return f.dial(ctx, s.Addr()) }))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	return conn, stop
}

func call(ctx context.Context, conn *grpc.ClientConn, method string, size int, opts ...grpc.CallOption) error {
	resp := new(wrapperspb.BytesValue)
	err := conn.Invoke(ctx, "/test.Echo/"+method, wrapperspb.Bytes(make([]byte, size)), resp, opts...)
	if err == nil && len(resp.Value) != size {
		return errors.New("response differs from request")
	}
	return err
}

func noop(context.Context, int) error { return nil }

// holds reports whether used is the reservation of one call with a message of this size.
func holds(used int64, size int) bool {
	const perCall = 16 << 10
	return used >= int64(size)+perCall && used <= int64(size)+perCall+1000
}

func TestMessageCompression(t *testing.T) {
	f := newFixture(t, 64<<20)
	conn, stop := f.grpc(grpcConfig(), noop)
	for _, name := range []string{"identity", "gzip", "zstd", "snappy"} {
		for _, method := range []string{"Raw", "Message"} {
			for _, size := range []int{0, 100, 100, 700_000} {
				if err := call(t.Context(), conn, method, size, grpc.UseCompressor(name)); err != nil {
					t.Errorf("%s, %s, %d bytes: %v", name, method, size, err)
				}
			}
			// Decompressed size far above the limit. Without compression, gRPC refuses the length.
			err := call(t.Context(), conn, method, 16<<20, grpc.UseCompressor(name))
			if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "larger than max") {
				t.Errorf("%s, %s, bomb: %v", name, method, err)
			}
		}
	}
	// gRPC sends some refusals before the server counts them.
	if err := stop(t.Context()); err != nil {
		t.Error(err)
	}
	if n := f.refused(server.ReasonTooLarge); n != 8 {
		t.Errorf("counted %v refusals, want 8", n)
	}
	// A reservation is released shortly after the response, so that consecutive calls may overlap.
	if peak := f.set.Budget.Peak(); peak > 4<<20 {
		t.Errorf("peak reservation of sequential calls: %d bytes", peak)
	}
}

func TestCallAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2<<20).inMemory()
		entered, leave := make(chan int64), make(chan bool)
		conn, _ := f.grpc(grpcConfig(), func(context.Context, int) error {
			entered <- f.set.Budget.Used()
			<-leave
			return nil
		})
		answer := make(chan error)
		for _, method := range []string{"Raw", "Message"} {
			go func() { answer <- call(t.Context(), conn, method, 1000) }()
			if used := <-entered; !holds(used, 1000) {
				t.Errorf("%s: %d bytes reserved for a message of 1000 bytes", method, used)
			}
			all, err := f.set.Budget.Reserve(1<<20 + 1)
			if err != nil {
				t.Fatal(err)
			}
			checkOverloaded(t, call(t.Context(), conn, method, 1000))
			if resp, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
				t.Errorf("health check without budget: %v %v", resp, err)
			}
			all.Release()
			leave <- true
			if err := <-answer; err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if used := f.set.Budget.Used(); used != 0 {
				t.Errorf("%s: %d bytes reserved after the call", method, used)
			}
		}
		if n := f.refused(server.ReasonOverBudget); n != 2 {
			t.Errorf("counted %v refusals, want 2", n)
		}
	})
}

func checkOverloaded(t *testing.T, err error) {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != codes.ResourceExhausted || len(s.Details()) != 1 {
		t.Fatalf("over budget: %v", err)
	}
	if ri, ok := s.Details()[0].(*errdetails.RetryInfo); !ok || ri.RetryDelay.AsDuration() <= 0 {
		t.Errorf("no retry delay: %v", s.Details())
	}
}

func TestStreamReservesItsLatestMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2<<20).inMemory()
		reserved := make(chan int64, 1)
		conn, _ := f.grpc(grpcConfig(), func(context.Context, int) error {
			reserved <- f.set.Budget.Used()
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ss, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/test.Echo/Stream")
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{500_000, 1000} {
			if err := ss.SendMsg(wrapperspb.Bytes(make([]byte, size))); err != nil {
				t.Fatal(err)
			}
			if n := <-reserved; !holds(n, size) {
				t.Errorf("message of %d bytes: %d bytes reserved", size, n)
			}
			if err := ss.RecvMsg(new(wrapperspb.BytesValue)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute) // read_timeout applies only to the first message
		}
		cancel()
		synctest.Wait()
		if used := f.set.Budget.Used(); used != 0 || f.refused("") != 0 {
			t.Errorf("after the stream: %d bytes reserved, %v refusals", used, f.refused(""))
		}
	})
}

// Calls that send nothing must not exhaust the budget.
func TestSilentCallsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 8<<20).inMemory()
		conn, _ := f.grpc(grpcConfig(), noop)
		var silent []grpc.ClientStream
		for range 20 {
			ss, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/test.Echo/Stream")
			if err != nil {
				t.Fatal(err)
			}
			silent = append(silent, ss)
		}
		synctest.Wait()
		if used := f.set.Budget.Used(); used != 4<<20 || f.refused(server.ReasonOverBudget) != 16 {
			t.Errorf("silent calls: %d of 8 MiB reserved, %v refused", used, f.refused(server.ReasonOverBudget))
		}
		checkOverloaded(t, call(t.Context(), conn, "Raw", 1000))
		if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
			t.Errorf("health: %v", err)
		}
		for _, ss := range silent {
			if err := ss.RecvMsg(new(wrapperspb.BytesValue)); err == nil {
				t.Error("silent call succeeded")
			}
		}
		synctest.Wait()
		if err := call(t.Context(), conn, "Raw", 1000); err != nil || f.set.Budget.Used() > 1<<20 {
			t.Errorf("afterwards: %v, %d bytes reserved", err, f.set.Budget.Used())
		}
	})
}

// The message stays in memory until the handler returns, even if the client has disconnected.
func TestReservationLastsUntilTheHandlerReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 8<<20).inMemory()
		entered, leave := make(chan bool), make(chan bool)
		conn, _ := f.grpc(grpcConfig(), func(context.Context, int) error {
			entered <- true
			<-leave
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() { answer <- call(ctx, conn, "Raw", 500_000) }()
		<-entered
		cancel()
		if err := <-answer; status.Code(err) != codes.Canceled {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if used := f.set.Budget.Used(); !holds(used, 500_000) {
			t.Errorf("%d bytes reserved while the handler runs", used)
		}
		close(leave)
		synctest.Wait()
		if used := f.set.Budget.Used(); used != 0 || f.refused("") != 0 {
			t.Errorf("%d bytes still reserved, %v refusals", used, f.refused(""))
		}
	})
}

func TestSlowCallTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2<<20).inMemory()
		conn, _ := f.grpc(grpcConfig(), noop)
		ss, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, "/test.Echo/Raw")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if used := f.set.Budget.Used(); used != 1<<20 {
			t.Errorf("%d bytes reserved before the first message", used)
		}
		if err := ss.RecvMsg(new(wrapperspb.BytesValue)); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if used := f.set.Budget.Used(); used != 0 || f.refused(server.ReasonIncomplete) != 1 {
			t.Errorf("%d bytes still reserved, %v refusals", used, f.refused(server.ReasonIncomplete))
		}
	})
}

func TestReadTimeoutDoesNotApplyToSlowHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, _ := newFixture(t, 0).inMemory().grpc(grpcConfig(), func(ctx context.Context, _ int) error {
			time.Sleep(time.Hour)
			return ctx.Err()
		})
		if err := call(t.Context(), conn, "Raw", 10); err != nil {
			t.Error(err)
		}
	})
}

// EndCall ends a call whose client does not read the response.
func TestEndCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0).inMemory()
		cfg := grpcConfig()
		cfg.WriteTimeout = 0
		conn, _ := f.grpc(cfg, func(ctx context.Context, size int) error {
			inner, cancel := context.WithCancel(ctx)
			defer cancel()
			if size > 0 {
				time.AfterFunc(time.Second, func() { server.EndCall(ctx) })
				return nil
			}
			server.EndCall(inner)
			<-inner.Done()
			return ctx.Err()
		})
		if err := call(t.Context(), conn, "Raw", 0); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("call ended by its handler: %v", err)
		}
		ss, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/test.Echo/Stream")
		const sent = 2 // gRPC buffers one response; the next blocks
		for range sent {
			err = errors.Join(err, ss.SendMsg(wrapperspb.Bytes(make([]byte, 500<<10))))
		}
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if used := f.set.Budget.Used(); used == 0 {
			t.Error("call ended before EndCall")
		}
		time.Sleep(time.Minute)
		if used := f.set.Budget.Used(); used != 0 {
			t.Errorf("%d bytes still reserved", used)
		}
		received := -1
		for err = nil; err == nil; received++ {
			err = ss.RecvMsg(new(wrapperspb.BytesValue))
		}
		if status.Code(err) != codes.DeadlineExceeded || received != sent-1 {
			t.Errorf("%v after %d of %d messages", err, received, sent)
		}
	})
}

func TestGRPCHandlerPanics(t *testing.T) {
	f := newFixture(t, 0)
	clients := f.clientsOfPanics()
	conn, _ := f.grpc(grpcConfig(), func(context.Context, int) error { panic("boom") })
	for range 2 {
		if err := call(t.Context(), conn, "Raw", 1); status.Code(err) != codes.Internal || strings.Contains(err.Error(), "boom") {
			t.Errorf("got %v", err)
		}
	}
	ss, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/test.Echo/Stream")
	if err != nil {
		t.Fatal(err)
	}
	if err := ss.SendMsg(wrapperspb.Bytes(nil)); err != nil {
		t.Fatal(err)
	}
	if err := ss.RecvMsg(new(wrapperspb.BytesValue)); status.Code(err) != codes.Internal {
		t.Errorf("stream: %v", err)
	}
	if n := f.metric("tracing_server_panics_total", ""); n != 3 {
		t.Errorf("counted %v", n)
	}
	if n := clients(); n != 3 {
		t.Errorf("%d log lines name the client", n)
	}
}

func TestUndecodableMessageIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1<<20).inMemory()
		conn, _ := f.grpc(grpcConfig(), noop)
		garbage := server.Raw("\xff\xff\xff")
		err := conn.Invoke(t.Context(), "/test.Echo/Message", &garbage, &server.Raw{}, grpc.ForceCodecV2(server.RawCodec()))
		synctest.Wait() // the call is counted when it ends, just after its response
		if status.Code(err) != codes.Internal || f.refused(server.ReasonUndecodable) != 1 {
			t.Errorf("got %v, counted %v", err, f.refused(server.ReasonUndecodable))
		}
	})
}

func TestCallsRefusedByGRPCAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1<<20).inMemory()
		conn, _ := f.grpc(grpcConfig(), noop)
		for n := 1.0; n <= 3; n++ {
			if err := call(t.Context(), conn, "NoSuchMethod", 10); status.Code(err) != codes.Unimplemented {
				t.Fatalf("got %v", err)
			}
			synctest.Wait()
			if f.refused(server.ReasonProtocol) != n || f.set.Budget.Used() != 0 {
				t.Errorf("counted %v, %d bytes reserved", f.refused(server.ReasonProtocol), f.set.Budget.Used())
			}
		}
	})
}

func TestHealthAndReflection(t *testing.T) {
	f := newFixture(t, 0)
	conn, _ := f.grpc(grpcConfig(), noop)
	health := healthpb.NewHealthClient(conn)
	for name, want := range map[string]codes.Code{"": codes.OK, "test.Echo": codes.OK, "unknown": codes.NotFound} {
		resp, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
		if status.Code(err) != want || err == nil && resp.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v %v", name, resp, err)
		}
	}
	v1, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v1.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	resp, err := v1.Recv()
	if err != nil || !strings.Contains(resp.String(), "grpc.health.v1.Health") || strings.Contains(resp.String(), "test.Echo") {
		t.Errorf("v1 must list what it can describe: %v %v", resp, err)
	}
	alpha, err := reflectionalpha.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	//lint:ignore SA1019 old clients use it
	alpha.Send(&reflectionalpha.ServerReflectionRequest{MessageRequest: &reflectionalpha.ServerReflectionRequest_ListServices{}})
	if resp, err := alpha.Recv(); err != nil || !strings.Contains(resp.String(), "grpc.health.v1.Health") {
		t.Errorf("v1alpha: %v %v", resp, err)
	}
}

// Stop with an active call, a health watch and an idle reflection stream.
func TestGRPCStopDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, leave := make(chan bool), make(chan bool)
		conn, stop := newFixture(t, 8<<20).inMemory().grpc(grpcConfig(), func(context.Context, int) error {
			entered <- true
			<-leave
			return nil
		})
		watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{Service: "test.Echo"})
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := watch.Recv(); err != nil || resp.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("before: %v %v", resp, err)
		}
		if _, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context()); err != nil {
			t.Fatal(err)
		}
		answer, stopped := make(chan error, 1), make(chan error, 1)
		go func() { answer <- call(t.Context(), conn, "Raw", 10) }()
		<-entered
		go func() { stopped <- stop(t.Context()) }()
		if resp, err := watch.Recv(); err != nil || resp.Status != healthpb.HealthCheckResponse_NOT_SERVING {
			t.Errorf("while draining: %v %v", resp, err)
		}
		close(leave)
		if err := <-answer; err != nil {
			t.Errorf("active call: %v", err)
		}
		if err := <-stopped; err != nil {
			t.Errorf("Stop: %v", err)
		}
		if _, err := watch.Recv(); err == nil {
			t.Error("health watch still open")
		}
	})
}

func TestGRPCStopAbortsAtDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered := make(chan bool)
		conn, stop := newFixture(t, 0).inMemory().grpc(grpcConfig(), func(ctx context.Context, _ int) error {
			entered <- true
			<-ctx.Done()
			return ctx.Err()
		})
		answer := make(chan error, 1)
		go func() { answer <- call(t.Context(), conn, "Raw", 10) }()
		<-entered
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := stop(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 calls aborted") {
			t.Errorf("Stop: %v", err)
		}
		if err := <-answer; err == nil {
			t.Error("aborted call succeeded")
		}
	})
}

func TestMessageLimitIsCappedToTheBudget(t *testing.T) {
	f := newFixture(t, 1<<19)
	conn, _ := f.grpc(grpcConfig(), noop)
	if err := call(t.Context(), conn, "Raw", 1000); err != nil {
		t.Errorf("budget below the message limit: %v", err)
	}
	if err := call(t.Context(), conn, "Raw", 1<<19+1); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

func TestConfigValidation(t *testing.T) {
	h, g := server.DefaultHTTPConfig("localhost:0"), server.DefaultGRPCConfig("localhost:0")
	if err := errors.Join(h.Validate(), g.Validate()); err != nil {
		t.Errorf("defaults: %v", err)
	}
	h, g = server.HTTPConfig{}, server.GRPCConfig{}
	for key, err := range map[string]error{"max_request_body_size": h.Validate(), "keepalive::server_parameters::time": g.Validate()} {
		many, ok := err.(interface{ Unwrap() []error })
		if !ok {
			t.Fatalf("%s: %v", key, err)
		}
		found := false
		for _, e := range many.Unwrap() {
			var k *pipeline.KeyError
			found = found || errors.As(e, &k) && k.Key == key
		}
		if !found {
			t.Errorf("no error for key %s: %v", key, err)
		}
	}
}
