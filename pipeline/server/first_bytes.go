package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
)

// wrongProtocol is a protocol that a listener does not speak, recognized by the first bytes of a
// connection. Usually, a client is configured with the port of another protocol.
type wrongProtocol struct {
	reason string                                               // of the refusal
	event  string                                               // log message
	remedy string                                               // for the log and, if possible, the client
	answer func(conn *countedConn, sent io.Reader, text string) // nil: the client would not understand one
}

var (
	httpOnGRPC = wrongProtocol{ReasonHTTPOnGRPC, "refused HTTP request on a gRPC port",
		"this port expects gRPC, not HTTP/1.1; send to the HTTP port (for OTLP usually 4318), or set the protocol of the client to gRPC",
		httpAnswer}
	grpcOnHTTP = wrongProtocol{ReasonGRPCOnHTTP, "refused gRPC connection on an HTTP port",
		"this port expects HTTP/1.1, not gRPC; send to the gRPC port (for OTLP usually 4317), or set the protocol of the client to HTTP",
		grpcAnswer}
	tlsOnPlaintext = wrongProtocol{ReasonTLSOnPlaintext, "refused TLS connection on a port without TLS",
		"this port has no TLS; use http:// or an insecure connection, or configure tls for this listener", nil}
	plaintextOnTLS = wrongProtocol{ReasonPlaintextOnTLS, "refused connection without TLS on a port with TLS",
		"this port requires TLS; use https:// or a secure connection", httpAnswer}
)

// firstBytes is how many bytes of a connection are enough to recognize a protocol.
const firstBytes = 4

// httpMethods are the first bytes of requests of HTTP/1.1.
var httpMethods = []string{"GET ", "POST", "PUT ", "HEAD", "OPTI", "DELE", "PATC", "CONN"}

// wrongProtocol returns the protocol of a connection that begins with b if this listener does not
// speak it, otherwise nil.
func (a *acceptor) wrongProtocol(b []byte) *wrongProtocol {
	if len(b) < firstBytes {
		return nil
	}
	start := string(b[:firstBytes])
	isTLS := b[0] == 0x16 && b[1] == 3 // a handshake record of any version of TLS
	isHTTP := false
	for _, method := range httpMethods {
		isHTTP = isHTTP || start == method
	}
	isHTTP2 := beginsHTTP2(b)
	hasTLS := a.security.tls != nil
	switch {
	case hasTLS && (isHTTP || isHTTP2):
		return &plaintextOnTLS
	case hasTLS:
	case isTLS:
		return &tlsOnPlaintext
	case isHTTP && a.transport == transportGRPC:
		return &httpOnGRPC
	case isHTTP2 && a.transport == transportHTTP:
		return &grpcOnHTTP
	}
	return nil
}

// beginsHTTP2 reports whether b begins a connection of HTTP/2 without TLS.
func beginsHTTP2(b []byte) bool {
	return len(b) >= firstBytes && strings.HasPrefix(http2.ClientPreface, string(b[:firstBytes]))
}

// answerTime is the maximum time for a client of the wrong protocol to send its request and read
// the response.
const answerTime = time.Second

// maxUnread is the maximum number of bytes read from such a client. Many clients do not see a
// response while they are sending, or if the connection is closed with unread bytes.
const maxUnread = 1 << 20

const maxFrame = 16 << 10 // clients use this size until the server allows more

// Read implements net.Conn. It refuses the connection if its first bytes are of a protocol that the
// listener does not speak.
func (c *countedConn) Read(p []byte) (int, error) {
	if len(c.peeked) > 0 {
		n := copy(p, c.peeked)
		c.peeked = c.peeked[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if c.known || n == 0 {
		return n, err
	}
	if a := c.listener.owner; a.shared != nil && a.security.tls == nil && beginsHTTP2(p[:n]) {
		c.known = true
		a.shared.serveCounted(c, bytes.Clone(p[:n]))
		return 0, io.EOF
	}
	if c.check(p[:n]) != nil {
		return 0, io.EOF
	}
	return n, err
}

// peek reads and checks the first bytes before the server writes anything.
func (c *countedConn) peek() error {
	start := make([]byte, firstBytes)
	if _, err := io.ReadFull(c.Conn, start); err != nil {
		return err
	}
	c.peeked = start
	return c.check(start)
}

// check returns an error after it has refused the connection because of its first bytes.
func (c *countedConn) check(start []byte) error {
	c.known = true
	wrong := c.listener.owner.wrongProtocol(start)
	if wrong == nil {
		return nil
	}
	c.refuse(wrong, start)
	return errors.New(wrong.event)
}

// peekCreds are the credentials of a gRPC server without TLS. gRPC writes to a connection before it
// reads, so the protocol of the client is checked during the handshake.
type peekCreds struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (c peekCreds) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if conn, ok := raw.(*countedConn); ok {
		if err := conn.peek(); err != nil {
			return nil, nil, err
		}
	}
	return c.TransportCredentials.ServerHandshake(raw)
}

// Clone implements credentials.TransportCredentials.
func (c peekCreds) Clone() credentials.TransportCredentials {
	return peekCreds{c.TransportCredentials.Clone()}
}

// refuse counts and logs a connection that begins with start, and responds if the client can
// understand a response.
func (c *countedConn) refuse(wrong *wrongProtocol, start []byte) {
	a := c.listener.owner
	a.countRefused(wrong.reason)
	a.refusals.Warn(wrong.event, zap.Stringer("client", c.RemoteAddr()), zap.String("remedy", wrong.remedy))
	if wrong.answer == nil || c.SetDeadline(time.Now().Add(answerTime)) != nil {
		return
	}
	rest := io.LimitReader(c.Conn, maxUnread)
	wrong.answer(c, io.MultiReader(bytes.NewReader(start), rest), wrong.remedy)
	if c.CloseWrite() == nil {
		io.Copy(io.Discard, rest) //nolint:errcheck // ends when the client has closed the connection
	}
}

// httpAnswer responds to an HTTP/1.1 request with status 400, even if the body does not arrive in
// time.
func httpAnswer(conn *countedConn, sent io.Reader, text string) {
	if r, err := http.ReadRequest(bufio.NewReader(sent)); err == nil && r.Header.Get("Expect") == "" {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // the response does not depend on it
	}
	if conn.SetDeadline(time.Now().Add(answerTime)) != nil {
		return
	}
	fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		http.StatusBadRequest, http.StatusText(http.StatusBadRequest), len(text)+1, text)
}

// grpcAnswer responds to the first call of a gRPC client with UNIMPLEMENTED, which clients do not
// retry.
func grpcAnswer(conn *countedConn, sent io.Reader, text string) {
	if _, err := io.CopyN(io.Discard, sent, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(conn, sent)
	f.SetMaxReadFrameSize(maxFrame)
	if f.WriteSettings() != nil {
		return
	}
	for {
		switch frame, err := f.ReadFrame(); frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() && f.WriteSettingsAck() != nil {
				return
			}
		case *http2.HeadersFrame:
			answer := http2.HeadersFrameParam{StreamID: frame.StreamID, EndHeaders: true, EndStream: true,
				BlockFragment: grpcStatus(codes.Unimplemented, text)}
			if f.WriteHeaders(answer) == nil {
				f.WriteGoAway(frame.StreamID, http2.ErrCodeNo, []byte(text)) //nolint:errcheck // the client has disconnected
			}
			return
		default:
			if err != nil {
				return
			}
		}
	}
}

// grpcStatus returns the encoded headers of a response without messages.
func grpcStatus(code codes.Code, text string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, h := range [][2]string{{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", strconv.Itoa(int(code))},
		{"grpc-message", text}} {
		e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}) //nolint:errcheck // a buffer has no errors
	}
	return b.Bytes()
}
