package doctor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

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

// ownerOfFiles returns the process that has one of the files or sockets open, which are called as
// the links in /proc.
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
// the table begins with its number, the local address, the remote address and the state; the inode
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

// socketAddress parses an address such as 0100007F:1F90: words of 32 bits in the byte order of the
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
