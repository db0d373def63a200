package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/ClickHouse/ch-go/proto"
	chgo "github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// eachBlock calls visit with the blocks of a result in Native format, which the library writes for
// protocol version 0.
func eachBlock(native []byte, visit func(*chgo.Block) error) error {
	r := proto.NewReader(bytes.NewReader(native))
	for {
		block := chgo.NewBlock()
		err := block.Decode(r, 0)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("decoding the result of the engine: %w", err)
		}
		if err := visit(block); err != nil {
			return err
		}
	}
}
