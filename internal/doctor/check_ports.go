package doctor

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"syscall"

	"github.com/tracing-backend/tracing/pipeline"
)

// checkPorts checks each listener: before the start its address must be free, and afterwards the
// process must listen on it.
func checkPorts(ctx context.Context, x *examination) []Finding {
	if x.process.hangs != "" {
		return []Finding{x.process.hangFinding()}
	}
	var found []Finding
	for i := range x.listeners {
		l := &x.listeners[i]
		switch {
		case port(l.address) == 0:
			found = append(found, newFinding(l.String(), Skipped, "any free port"))
		case x.process.running:
			found = append(found, x.checkOpen(ctx, l))
		default:
			found = append(found, x.checkFree(ctx, l))
		}
	}
	if len(found) == 0 {
		found = append(found, newFinding("", Skipped, "no listeners in the configuration"))
	}
	return found
}

// port returns the port of host:port, 0 if there is none.
func port(address string) int {
	_, text, err := pipeline.SplitHostPort(address)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// listen opens the address of a listener.
func (x *examination) listen(ctx context.Context, l *listener) (io.Closer, error) {
	if l.network == "udp" {
		return x.env.ListenPacket(ctx, "udp", l.address)
	}
	return x.env.Listen(ctx, "tcp", l.address)
}

// checkFree opens the address for a moment.
func (x *examination) checkFree(ctx context.Context, l *listener) Finding {
	opened, err := x.listen(ctx, l)
	if err == nil {
		opened.Close() //nolint:errcheck // was not used
		return newFinding(l.String(), OK, "free")
	}
	dns := (*net.DNSError)(nil)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return newFinding(l.String(), Problem, "used by %s", ownerOf(ctx, x.env, l.network, l.address)).
			advise("stop that process, or change %s::endpoint", blockKey(l))
	case errors.Is(err, syscall.EACCES):
		return newFinding(l.String(), Problem, "this user may not listen on it: %v", err).
			advise("change %s::endpoint to a port above 1023, or give the program the capability CAP_NET_BIND_SERVICE", blockKey(l))
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &dns):
		return newFinding(l.String(), Problem, "host is not an address of this machine: %v", err).
			advise("change the host in %s::endpoint, or TRACING_LISTEN_HOST; 0.0.0.0 stands for all addresses", blockKey(l))
	}
	return newFinding(l.String(), Problem, "cannot listen: %v", err).advise("change %s::endpoint", blockKey(l))
}

// blockKey returns the path of the block of a listener in the configuration.
func blockKey(l *listener) string {
	if l.path == "" {
		return key(l.component)
	}
	return key(l.component) + "::" + l.path
}

// checkOpen checks that the running process listens on the address.
func (x *examination) checkOpen(ctx context.Context, l *listener) Finding {
	owner := ownerOf(ctx, x.env, l.network, l.address)
	if !x.isOpen(ctx, l) {
		return newFinding(l.String(), Problem, "nothing listens, although the process is running").
			advise("run this command with the configuration of the process, or restart the process with this configuration")
	}
	if x.process.pid > 0 && owner.pid > 0 && owner.pid != x.process.pid {
		return newFinding(l.String(), Problem, "%s listens, not %s", owner, x.process).
			advise("stop one of them, or change %s::endpoint", blockKey(l))
	}
	if owner.pid > 0 {
		return newFinding(l.String(), OK, "open; %s listens", owner)
	}
	return newFinding(l.String(), OK, "open")
}

// isOpen reports whether a TCP address accepts connections, or a UDP address is in use.
func (x *examination) isOpen(ctx context.Context, l *listener) bool {
	if l.network == "udp" {
		opened, err := x.listen(ctx, l)
		if err == nil {
			opened.Close() //nolint:errcheck // was not used
		}
		return errors.Is(err, syscall.EADDRINUSE)
	}
	conn, err := x.env.Dial(ctx, "tcp", l.hostPort())
	if err == nil {
		conn.Close() //nolint:errcheck // nothing was sent
	}
	return err == nil
}
