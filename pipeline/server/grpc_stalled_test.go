package server_test

import (
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const stalledConns = "tracing_server_stalled_connections_total"

// The connection of a client that stops reading a response is closed after write_timeout. A client
// that reads slowly gets its responses.
func TestStalledReader(t *testing.T) {
	for name, c := range map[string]struct {
		pause time.Duration // before each response is read
		code  codes.Code
		conns float64
	}{"slow": {50 * time.Second, codes.OK, 0}, "stalled": {61 * time.Second, codes.Unavailable, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, 0).inMemory()
				conn, _ := f.grpc(grpcConfig(), noop)
				ss, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/test.Echo/Stream")
				if err != nil {
					t.Fatal(err)
				}
				const sent = 2 // gRPC buffers one response; the next blocks
				for range sent {
					if err := ss.SendMsg(wrapperspb.Bytes(make([]byte, 500<<10))); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				for range sent {
					time.Sleep(c.pause)
					if err = ss.RecvMsg(new(wrapperspb.BytesValue)); err != nil {
						break
					}
				}
				if status.Code(err) != c.code || f.metric(stalledConns, "") != c.conns {
					t.Errorf("error %v, %v connections closed", err, f.metric(stalledConns, ""))
				}
				if err == nil {
					time.Sleep(time.Hour) // nothing is left to read
					err = call(t.Context(), conn, "Raw", 10)
				} else {
					err = call(t.Context(), conn, "Raw", 10, grpc.WaitForReady(true)) // on a new connection
				}
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A call whose handler has ended keeps its response while the client does not read.
func TestStalledReaderOfEndedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0).inMemory()
		f.grpc(grpcConfig(), noop)
		conn, err := f.dial(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // a test
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
			t.Fatal(err)
		}
		fr := http2.NewFramer(conn, conn)
		fr.WriteSettings()    //nolint:errcheck // reading fails
		fr.WriteSettingsAck() //nolint:errcheck // reading fails
		block := &headerBlock{}
		enc := hpack.NewEncoder(block)
		for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/test.Echo/Raw"}, {":authority", "x"},
			{"content-type", "application/grpc"}, {"te", "trailers"}} {
			enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}) //nolint:errcheck // writes to memory
		}
		const size = 60 << 10
		request := func(id uint32) {
			h := http2.HeadersFrameParam{StreamID: id, BlockFragment: block.b, EndHeaders: true}
			fr.WriteHeaders(h) //nolint:errcheck // reading fails
			message := append([]byte{0, 0, 0, size >> 8, 0}, make([]byte, size)...)
			for part := range slices.Chunk(message, 16<<10) {
				fr.WriteData(id, false, part) //nolint:errcheck // reading fails
			}
			fr.WriteData(id, true, nil) //nolint:errcheck // reading fails
		}
		// The window of 65,535 bytes suffices for the first response. The second one is queued.
		start, received, responses := time.Now(), 0, 0
		request(1)
		for {
			frame, err := fr.ReadFrame()
			if err != nil {
				break
			}
			if d, ok := frame.(*http2.DataFrame); ok {
				received += len(d.Data())
			}
			if h, ok := frame.(*http2.HeadersFrame); ok && h.StreamEnded() {
				responses++
				request(3)
			}
		}
		if waited := time.Since(start); received != 65535 || responses != 1 || waited != time.Minute || f.metric(stalledConns, "") != 1 {
			t.Errorf("connection closed after %v and %d bytes, %d responses", waited, received, responses)
		}
		synctest.Wait()
	})
}

type headerBlock struct{ b []byte }

func (h *headerBlock) Write(p []byte) (int, error) {
	h.b = append(h.b, p...)
	return len(p), nil
}
