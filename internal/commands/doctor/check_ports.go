package doctor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/tracing-backend/tracing/pipeline"
)

// checkPorts checks each listener: its address must be free before the process starts; afterwards,
// the process must listen on it.
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

// owner is the process that listens on a port.
type owner struct {
	pid  int // 0 if unknown
	name string
}

// String describes the process.
func (o owner) String() string {
	if o.pid == 0 {
		return "another process (its id is visible to its user and to root, on Linux)"
	}
	return fmt.Sprintf("process %d (%s)", o.pid, o.name)
}

// isProgram reports whether the process runs this program.
func (o owner) isProgram() bool {
	name, err := os.ReadFile("/proc/self/comm")
	return err == nil && o.pid > 0 && o.name == strings.TrimSpace(string(name))
}

// isStopped reports whether the process was stopped by a signal or a debugger.
func (o owner) isStopped() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", o.pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ") // the name may have spaces
	return strings.HasPrefix(state, "T") || strings.HasPrefix(state, "t")
}

// States of listening sockets in /proc/net.
const (
	stateTCPListen = "0A"
	stateUDPBound  = "07"
)

// ownerOf finds the process that listens on an address of this host, host:port, in the file system
// /proc.
func ownerOf(ctx context.Context, env pipeline.Env, network, address string) owner {
	host, _, err := pipeline.SplitHostPort(address)
	if err != nil {
		return owner{}
	}
	ips := map[string]bool{}
	if host != "" {
		found, err := env.LookupHost(ctx, host)
		if err != nil {
			return owner{}
		}
		for _, text := range found {
			ips[text] = true
		}
	}
	at := func(ip net.IP) bool {
		return host == "" || net.ParseIP(host).IsUnspecified() || ip.IsUnspecified() || ips[ip.String()]
	}
	sockets := map[string]bool{}
	for _, file := range []string{network, network + "6"} {
		for _, inode := range listening(filepath.Join("/proc/net", file), port(address), at) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	return ownerOfFiles(sockets)
}

// ownerOfFiles returns the process that has one of the files or sockets open. Their names are the
// link targets in /proc.
func ownerOfFiles(files map[string]bool) owner {
	if len(files) == 0 {
		return owner{}
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return owner{}
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || !files[target] {
			continue
		}
		folder := filepath.Dir(filepath.Dir(link))
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		name, err := os.ReadFile(filepath.Join(folder, "comm"))
		if err != nil {
			name = []byte("unknown")
		}
		return owner{pid, strings.TrimSpace(string(name))}
	}
	return owner{}
}

// listening returns the inodes of sockets that listen on a port of a suitable address. A line of
// the table starts with its number, the local address, the remote address and the state; the inode
// is the tenth field.
func listening(table string, port int, suitable func(net.IP) bool) (inodes []string) {
	const fieldAddress, fieldState, fieldInode = 1, 3, 9
	f, err := os.Open(table) //nolint:gosec // a constant path
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // was read only
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) <= fieldInode {
			continue
		}
		ip, at := socketAddress(fields[fieldAddress])
		state := fields[fieldState]
		if at == port && ip != nil && suitable(ip) && (state == stateTCPListen || state == stateUDPBound) {
			inodes = append(inodes, fields[fieldInode])
		}
	}
	return inodes
}

// socketAddress parses an address such as 0100007F:1F90: 32-bit words in the byte order of the
// host, which is little-endian on the supported platforms, and the port.
func socketAddress(text string) (ip net.IP, port int) {
	words, portText, ok := strings.Cut(text, ":")
	raw, err := hex.DecodeString(words)
	n, portErr := strconv.ParseUint(portText, 16, 16)
	if !ok || err != nil || portErr != nil || len(raw) != net.IPv4len && len(raw) != net.IPv6len {
		return nil, 0
	}
	for i := 0; i < len(raw); i += 4 {
		slices.Reverse(raw[i : i+4])
	}
	return raw, int(n)
}
