package pipeline

import (
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline/internal/sysmem"
)

// Types of configuration fields in addition to Go's own. They parse themselves from text
// (encoding.TextUnmarshaler) and print themselves for print-config.

// Duration is a time.Duration written as `250ms`, `5s`, `1h30m` or `7d`.
type Duration time.Duration

// Std returns the duration as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String returns the duration in the format of time.Duration.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses a Go duration or a whole number of days.
func (d *Duration) UnmarshalText(b []byte) error {
	s := string(b)
	if s == "0" {
		*d = 0
		return nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			*d = Duration(time.Duration(n) * 24 * time.Hour)
			return nil
		}
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is not a duration; write 250ms, 5s, 1h30m or 7d", s)
	}
	if v < 0 {
		return fmt.Errorf("%q is negative; a duration must not be negative", s)
	}
	*d = Duration(v)
	return nil
}

// ByteSize is a number of bytes, written as `4MiB`, `50GiB`, `1000000`, or as a percentage of the
// memory that the process may use: `10%`.
type ByteSize int64

var byteUnits = []struct {
	suffix string
	size   int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, // String uses the first four
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

// String returns the size in the largest binary unit that divides it.
func (s ByteSize) String() string {
	for _, u := range byteUnits[:4] {
		if s != 0 && int64(s)%u.size == 0 {
			return strconv.FormatInt(int64(s)/u.size, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalText returns String.
func (s ByteSize) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses a number with or without a unit, or a percentage of memory.
func (s *ByteSize) UnmarshalText(b []byte) error {
	text := strings.TrimSpace(string(b))
	if p, ok := strings.CutSuffix(text, "%"); ok {
		n, err := strconv.ParseFloat(p, 64)
		if err != nil || !(n > 0 && n <= 100) {
			return fmt.Errorf("%q is not a percentage of memory; write 1%% to 100%%", text)
		}
		*s = ByteSize(float64(sysmem.Limit()) * n / 100)
		return nil
	}
	num, unit := text, int64(1)
	for _, u := range byteUnits {
		if n, ok := strings.CutSuffix(text, u.suffix); ok {
			num, unit = strings.TrimSpace(n), u.size
			break
		}
	}
	n, err := strconv.ParseFloat(num, 64)
	if err != nil || !(n >= 0 && n*float64(unit) < math.MaxInt64) {
		return fmt.Errorf("%q is not a size; write 64MiB, 50GiB, a number of bytes or 10%%", text)
	}
	*s = ByteSize(n * float64(unit))
	return nil
}

// MemoryShare returns a default size that depends on the available memory: 1/part of what
// GOMEMLIMIT, the cgroup or the machine allows, limited to most. It is a whole number of MiB, at
// least one.
func MemoryShare(part int64, most ByteSize) ByteSize {
	const mib = 1 << 20
	return min(most, max(ByteSize(sysmem.Available()/part)/mib*mib, mib))
}

// Secret is a string that is never printed. Package fmt prints unexported fields without calling
// their methods, so use it only in exported fields.
type Secret string

// String returns `***`, or "" for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// Format writes String for every verb.
func (s Secret) Format(f fmt.State, _ rune) {
	io.WriteString(f, s.String()) //nolint:errcheck // fmt handles write errors
}

// MarshalText returns String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText sets the secret to the text.
func (s *Secret) UnmarshalText(b []byte) error {
	*s = Secret(b)
	return nil
}

// Endpoint is the address of a listener: `localhost:4317`, `:4317`, `[::1]:4317`. An IPv6 address
// may be written without brackets. Port 0 is any free port. It is a TCP address, or a UDP address
// in a field with the tag `network:"udp"`. Two listeners with the same address are a mistake in the
// configuration.
type Endpoint string

// String returns the address.
func (e Endpoint) String() string { return string(e) }

// MarshalText returns String.
func (e Endpoint) MarshalText() ([]byte, error) { return []byte(e), nil }

// UnmarshalText parses host:port and adds brackets to an IPv6 address that has none.
func (e *Endpoint) UnmarshalText(b []byte) error {
	host, port, err := SplitHostPort(string(b))
	if err != nil && strings.Count(string(b), ":") > 1 && !strings.Contains(string(b), "://") {
		return fmt.Errorf("%q is not an address; write [host]:port for an IPv6 address, for example [::1]:4317", b)
	}
	if err != nil {
		return fmt.Errorf("%q is not an address; write host:port, for example localhost:4317", b)
	}
	if strings.ContainsAny(port, "/@?") { // of a URL
		return fmt.Errorf("%q is not an address; write host:port without a scheme, for example localhost:4317", b)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q: port %q is not a number from 0 to 65535", b, port)
	}
	if strings.ContainsAny(host, "/ ") {
		return fmt.Errorf("%q: %q is not a host; write host:port without a scheme", b, host)
	}
	*e = Endpoint(net.JoinHostPort(host, port))
	return nil
}

// SplitHostPort splits an address as [net.SplitHostPort] does. It also accepts an IPv6 address
// without brackets before the port, as `${TRACING_LISTEN_HOST}:4317` results in.
func SplitHostPort(address string) (host, port string, err error) {
	if i := strings.LastIndexByte(address, ':'); i > 0 {
		if ip, err := netip.ParseAddr(address[:i]); err == nil && ip.Is6() {
			return address[:i], address[i+1:], nil
		}
	}
	return net.SplitHostPort(address)
}
