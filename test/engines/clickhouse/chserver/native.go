package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"regexp"
	"strings"
	"sync"

	"github.com/ClickHouse/ch-go/proto"
	chgo "github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// nativeVersion is the version of the native protocol that the server speaks at most.
const nativeVersion = 54460

// nativeServer is ClickHouse's native protocol.
type nativeServer struct {
	runner *runner

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil if the server has stopped
	wait  sync.WaitGroup
}

func (s *nativeServer) serve(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.conns == nil {
			c.Close()
		} else {
			s.conns[c] = struct{}{}
			s.wait.Go(func() { s.serveConn(c) })
		}
		s.mu.Unlock()
	}
}

// stop closes all connections, which ends their statements.
func (s *nativeServer) stop() {
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.conns = nil
	s.mu.Unlock()
	s.wait.Wait()
}

func (s *nativeServer) serveConn(c net.Conn) {
	n := &nativeConn{runner: s.runner, conn: c, r: proto.NewReader(c), w: bufio.NewWriterSize(c, 1<<16)}
	err := n.serve()
	left := errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, errCut)
	if !left { // serve ends with an error
		n.exception(err)
		n.w.Flush() //nolint:errcheck // the connection ends
	}
	c.Close()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// nativeConn is one connection of the native protocol. Settings and the database of SET and USE
// apply to its later statements; settings of a query apply to that query.
type nativeConn struct {
	runner   *runner
	conn     net.Conn
	r        *proto.Reader
	w        *bufio.Writer
	version  int
	database string
	session  []string    // the SET and USE statements so far
	pending  chan packet // the code of the next packet, while or after it is read
}

// packet is the code of a packet of the client, or the error of reading it.
type packet struct {
	code proto.ClientCode
	err  error
}

// next starts to read the code of the next packet, unless that has started.
func (n *nativeConn) next() chan packet {
	if n.pending == nil {
		n.pending = make(chan packet, 1)
		go func(ch chan packet) {
			code, err := n.r.UInt8()
			ch <- packet{proto.ClientCode(code), err}
		}(n.pending)
	}
	return n.pending
}

// receive returns the code of the next packet.
func (n *nativeConn) receive() (proto.ClientCode, error) {
	p := <-n.next()
	n.pending = nil
	return p.code, p.err
}

// expect reads the code of a packet that must have the given one.
func (n *nativeConn) expect(want proto.ClientCode) error {
	code, err := n.receive()
	if err == nil && code != want {
		err = fmt.Errorf("packet %d instead of %d", code, want)
	}
	return err
}

func (n *nativeConn) serve() error {
	if err := n.hello(); err != nil {
		return err
	}
	for {
		if err := n.w.Flush(); err != nil {
			return err
		}
		code, err := n.receive()
		if err != nil {
			return err
		}
		switch code {
		case proto.ClientCodePing:
			n.w.WriteByte(byte(proto.ServerCodePong)) //nolint:errcheck // Flush returns the error
		case proto.ClientCodeCancel: // of a query that has ended
		case proto.ClientCodeQuery:
			if err := n.query(); err != nil {
				return err
			}
		default:
			return fmt.Errorf("unexpected packet %d", code)
		}
	}
}

func (n *nativeConn) hello() error {
	if err := n.expect(proto.ClientCodeHello); err != nil {
		return err
	}
	var hello proto.ClientHello
	if err := hello.Decode(n.r); err != nil {
		return err
	}
	n.version, n.database = min(hello.ProtocolVersion, nativeVersion), hello.Database
	s, err := n.runner.open(n.database, nil)
	if err != nil {
		return err
	}
	defer s.close()
	out, err := s.query("SELECT version(), timezone(), displayName()", "TabSeparated", nil)
	if err != nil {
		return err
	}
	answer := proto.ServerHello{Name: "ClickHouse", Revision: nativeVersion}
	fields := strings.Split(strings.TrimSpace(string(out.data)), "\t")
	_, err = fmt.Sscanf(fields[0], "%d.%d.%d", &answer.Major, &answer.Minor, &answer.Patch)
	if err != nil {
		return fmt.Errorf("version %q of the engine: %w", fields[0], err)
	}
	answer.Timezone, answer.DisplayName = fields[1], fields[2]
	var buf proto.Buffer
	answer.EncodeAware(&buf, n.version)
	n.w.Write(buf.Buf) //nolint:errcheck // Flush returns the error
	if err := n.w.Flush(); err != nil {
		return err
	}
	if proto.FeatureAddendum.In(n.version) {
		_, err = n.r.Str() // the quota key
	}
	return err
}

// query reads a query with its data and answers it. An error ends the connection.
func (n *nativeConn) query() error {
	var q proto.Query
	if err := q.DecodeAware(n.r, n.version); err != nil {
		return err
	}
	if tables, err := n.skipTables(&q); err != nil {
		return err
	} else if tables {
		n.exception(notSupported("external tables"))
		return nil
	}
	settings := map[string]string{}
	for _, s := range q.Settings {
		settings[s.Key] = s.Value
		if s.Custom {
			settings[s.Key] = unquote(s.Value)
		}
	}
	params := map[string]string{}
	for _, p := range q.Parameters {
		params[p.Key] = unquote(p.Value)
	}
	s, err := n.runner.open(n.database, nil)
	if err == nil {
		defer s.close()
		for _, statement := range n.session {
			s.query(statement, "Null", nil) //nolint:errcheck // it has succeeded before
		}
		err = s.set("", settings)
	}
	out := &answer{conn: n, compressed: q.Compression == proto.CompressionEnabled, method: settings["network_compression_method"]}
	if err == nil {
		err = out.run(s, q.Body, params)
	}
	var e *exception
	if err != nil && !errors.As(err, &e) {
		return err
	}
	if err != nil {
		n.exception(err)
	}
	return nil
}

// skipTables reads the blocks that follow a query up to the empty one. It reports whether there
// were others.
func (n *nativeConn) skipTables(q *proto.Query) (tables bool, err error) {
	for {
		if err := n.expect(proto.ClientCodeData); err != nil {
			return false, err
		}
		block, err := n.readBlock(q.Compression == proto.CompressionEnabled)
		if err != nil || len(block.Columns) == 0 {
			return tables, err
		}
		tables = true
	}
}

// readBlock reads the rest of a data packet.
func (n *nativeConn) readBlock(compressed bool) (*chgo.Block, error) {
	if _, err := n.r.Str(); err != nil { // the name of the table
		return nil, err
	}
	if compressed {
		n.r.EnableCompression()
		defer n.r.DisableCompression()
	}
	block := chgo.NewBlock()
	return block, block.Decode(n.r, uint64(n.version))
}

// exception answers a query with an error.
func (n *nativeConn) exception(err error) {
	var e *exception
	if !errors.As(err, &e) {
		e = newException(err.Error())
	}
	log.Print(e.text)
	_, text, _ := strings.Cut(e.text, "DB::Exception: ")
	packet := proto.Exception{Code: proto.Error(e.code), Name: "DB::Exception", Message: "DB::Exception: " + text}
	var buf proto.Buffer
	buf.PutByte(byte(proto.ServerCodeException))
	packet.EncodeAware(&buf, n.version)
	n.w.Write(buf.Buf) //nolint:errcheck // Flush returns the error
}

// watch returns a context that ends when the client cancels or leaves. stop ends the watch.
func (n *nativeConn) watch() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	codes, done, ended := n.next(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case p := <-codes:
			if p.err != nil || p.code == proto.ClientCodeCancel {
				cancel()
			}
			codes <- p // for receive
		case <-done:
		}
	}()
	return ctx, func() {
		close(done)
		<-ended
		cancel()
	}
}

var escapes = regexp.MustCompile(`\\.`)

// unquote returns the text of a parameter, which comes as a quoted literal. The engine takes
// parameters in escaped form, so one level of escapes stays.
func unquote(dump string) string {
	inner, ok := strings.CutPrefix(dump, "'")
	if !ok {
		return dump
	}
	return escapes.ReplaceAllStringFunc(strings.TrimSuffix(inner, "'"), func(s string) string {
		switch s[1] {
		case 'n':
			return "\n"
		case 'r':
			return "\r"
		case 't':
			return "\t"
		case '0':
			return "\x00"
		}
		return s[1:]
	})
}

// header encodes a block without rows.
func header(version int, names, types []string) []byte {
	var buf proto.Buffer
	proto.Block{Info: proto.BlockInfo{BucketNum: -1}, Columns: len(names)}.EncodeAware(&buf, version)
	for i := range names {
		buf.PutString(names[i])
		buf.PutString(types[i])
		if proto.FeatureCustomSerialization.In(version) {
			buf.PutBool(false)
		}
	}
	return buf.Buf
}

// nativeBlock is a block in the form in which the engine reads it.
func nativeBlock(b *chgo.Block) ([]byte, error) {
	var buf proto.Buffer
	err := b.Encode(&buf, 0)
	return bytes.Clone(buf.Buf), err
}
