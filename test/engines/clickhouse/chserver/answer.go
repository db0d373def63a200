package main

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/ClickHouse/ch-go/proto"
	chgo "github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// answer runs one query of the native protocol and writes its packets.
type answer struct {
	conn       *nativeConn
	compressed bool
	method     string // of compression; "" is LZ4
}

// quotedName is a name in quotes, as a regular expression.
const quotedName = "`(?:[^`\\\\]|\\\\.)*`|\"(?:[^\"\\\\]|\\\\.)*\""

var (
	insertTarget  = regexp.MustCompile(`(?is)^INSERT\s+INTO\s+(?:TABLE\s+)?((?:` + quotedName + `|[\w.])+)\s*(\((?:` + quotedName + "|[^()`\"])*\\))?")
	keepsSession  = regexp.MustCompile(`(?i)^(SET|USE)\s`)
	returnsRows   = regexp.MustCompile(`(?i)^(SELECT|WITH|\()`)
	trailingSpace = " \t\r\n;"
)

func (a *answer) run(s *session, statement string, params map[string]string) error {
	if head, _ := insertHead(statement); head != "" {
		return a.insert(s, head)
	}
	statement = strings.TrimRight(leading.ReplaceAllString(statement, ""), trailingSpace)
	if m := tailFormat.FindStringIndex(statement); m != nil {
		statement = statement[:m[0]] // the client formats
	}
	ctx, stop := a.conn.watch()
	out, err := a.conn.runner.run(ctx, statement, func(marked string) (*result, error) {
		return s.query(marked, "Native", params)
	})
	stop()
	if err != nil {
		return err
	}
	if keepsSession.MatchString(statement) {
		a.conn.session = append(a.conn.session, statement)
	}
	rows, blocks, err := a.blocks(out.data)
	if err != nil {
		return err
	}
	if blocks == 0 && returnsRows.MatchString(statement) {
		if err := a.header(s, statement, params); err != nil {
			return err
		}
	}
	a.end(out, rows, blocks)
	return nil
}

// insert answers with the columns of the table and passes the blocks of the client to the engine.
func (a *answer) insert(s *session, head string) error {
	m := insertTarget.FindStringSubmatch(head)
	if m == nil {
		return notSupported("this INSERT")
	}
	columns := "*"
	if list := strings.TrimSpace(m[2]); list != "" {
		columns = list[1 : len(list)-1]
	}
	if err := a.header(s, "SELECT "+columns+" FROM "+m[1], nil); err != nil {
		return err
	}
	if err := a.conn.w.Flush(); err != nil {
		return err
	}
	var ended bool // the client has sent its last block
	out, err := a.conn.runner.run(context.Background(), head, func(head string) (*result, error) {
		return s.insert(head, "Native", func() ([]byte, error) {
			data, err := a.nextBlock()
			ended = len(data) == 0
			return data, err
		})
	})
	for err != nil && !ended && !errors.Is(err, errCut) { // the client reads the error after its last block
		data, readErr := a.nextBlock()
		if readErr != nil {
			return readErr
		}
		ended = len(data) == 0
	}
	if err != nil {
		return err
	}
	a.end(out, 0, 0)
	return nil
}

// nextBlock reads a block of an insert, in the form that the engine reads, or nothing at the end.
func (a *answer) nextBlock() ([]byte, error) {
	if err := a.conn.expect(proto.ClientCodeData); err != nil {
		return nil, err
	}
	block, err := a.conn.readBlock(a.compressed)
	if err != nil || len(block.Columns) == 0 {
		return nil, err
	}
	return nativeBlock(block)
}

// header sends the names and types of the columns of a SELECT, in a block without rows.
func (a *answer) header(s *session, query string, params map[string]string) error {
	out, err := s.query("DESCRIBE TABLE ("+query+")", "Native", params)
	if err != nil {
		return err
	}
	var names, types []string
	err = eachBlock(out.data, func(b *chgo.Block) error {
		for i := range b.Rows() {
			var name, typ string
			if err := b.Columns[0].ScanRow(&name, i); err != nil {
				return err
			}
			if err := b.Columns[1].ScanRow(&typ, i); err != nil {
				return err
			}
			names, types = append(names, name), append(types, typ)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return a.data(header(a.conn.version, names, types))
}

// blocks sends the result of a query.
func (a *answer) blocks(native []byte) (rows, blocks int, err error) {
	err = eachBlock(native, func(b *chgo.Block) error {
		if blocks == 0 {
			var types []string
			for _, c := range b.Columns {
				types = append(types, string(c.Type()))
			}
			if err := a.data(header(a.conn.version, b.ColumnsNames(), types)); err != nil {
				return err
			}
		}
		rows, blocks = rows+b.Rows(), blocks+1
		var buf proto.Buffer
		if err := b.Encode(&buf, uint64(a.conn.version)); err != nil {
			return err
		}
		return a.data(buf.Buf)
	})
	return rows, blocks, err
}

// data sends a packet with a block.
func (a *answer) data(block []byte) error {
	var head proto.Buffer
	head.PutByte(byte(proto.ServerCodeData))
	head.PutString("")       // the name of the table
	a.conn.w.Write(head.Buf) //nolint:errcheck // the next write returns the error
	if a.compressed {
		var err error
		if block, err = frames(block, methodOf(a.method)); err != nil {
			return err
		}
	}
	_, err := a.conn.w.Write(block)
	return err
}

// end sends the packets at the end of a query without error.
func (a *answer) end(out *result, rows, blocks int) {
	var buf proto.Buffer
	if blocks > 0 {
		buf.PutByte(byte(proto.ServerCodeProfile))
		buf.PutUVarInt(uint64(rows))
		buf.PutUVarInt(uint64(blocks))
		buf.PutUVarInt(uint64(len(out.data)))
		buf.PutBool(false) // no LIMIT applied
		buf.PutUVarInt(0)  // rows before it
		buf.PutBool(false) // which were not counted
	}
	buf.PutByte(byte(proto.ServerCodeProgress))
	proto.Progress{
		Rows: out.rowsRead, Bytes: out.bytesRead, WroteRows: out.rowsWritten, WroteBytes: out.bytesWritten,
		ElapsedNs: uint64(out.elapsed * 1e9),
	}.EncodeAware(&buf, a.conn.version)
	buf.PutByte(byte(proto.ServerCodeEndOfStream))
	a.conn.w.Write(buf.Buf) //nolint:errcheck // Flush returns the error
}

// methodOf returns the method of compression for the value of network_compression_method.
func methodOf(setting string) compress.Method {
	if strings.EqualFold(setting, "zstd") {
		return compress.ZSTD
	}
	return compress.LZ4
}
