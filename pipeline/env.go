package pipeline

import (
	"context"
	"math/rand/v2"
	"net"
	"time"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// Env gives components access to the operating system: files, clock, randomness and network. Tests
// replace it.
type Env struct {
	FS           vfs.FS // for files below Settings.Dir
	Now          func() time.Time
	Rand         func() uint64
	Listen       func(ctx context.Context, network, address string) (net.Listener, error)
	ListenPacket func(ctx context.Context, network, address string) (net.PacketConn, error)
	Dial         func(ctx context.Context, network, address string) (net.Conn, error)
	LookupHost   func(ctx context.Context, host string) (addresses []string, err error) // IP addresses of a name
}

// SystemEnv returns an Env that uses the operating system.
func SystemEnv() Env {
	var lc net.ListenConfig
	var d net.Dialer
	return Env{FS: vfs.OS(), Now: time.Now, Rand: rand.Uint64, Listen: lc.Listen, ListenPacket: lc.ListenPacket, Dial: d.DialContext,
		LookupHost: net.DefaultResolver.LookupHost}
}
