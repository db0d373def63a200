package pipeline

import (
	"context"
	"math/rand/v2"
	"net"
	"time"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// Env is every effect that components have on, or take from, the outside: tests own them by replacing the functions.
type Env struct {
	FS           vfs.FS // files below Settings.Dir
	Now          func() time.Time
	Rand         func() uint64
	Listen       func(ctx context.Context, network, address string) (net.Listener, error)
	ListenPacket func(ctx context.Context, network, address string) (net.PacketConn, error)
	Dial         func(ctx context.Context, network, address string) (net.Conn, error)
}

// SystemEnv is the real outside.
func SystemEnv() Env {
	var lc net.ListenConfig
	var d net.Dialer
	return Env{FS: vfs.OS(), Now: time.Now, Rand: rand.Uint64, Listen: lc.Listen, ListenPacket: lc.ListenPacket, Dial: d.DialContext}
}
