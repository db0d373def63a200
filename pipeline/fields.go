package pipeline

import (
	"fmt"
	"io"
	"math"
	"net"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// The types of configuration fields besides Go's own. Each reads itself from text (encoding.TextUnmarshaler), says what it expects when
// it cannot, and prints itself for print-config.

// Duration is a time.Duration that is written `250ms`, `5s`, `1h30m`, or `7d`.
type Duration time.Duration

// Std returns the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String returns the Go form.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a Go duration, or whole days.
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
		return fmt.Errorf("%q is below zero; a duration must not be negative", s)
	}
	*d = Duration(v)
	return nil
}

// ByteSize is a number of bytes, written `4MiB`, `50GiB`, `1000000`, or `10%` of the memory that the process may use.
type ByteSize int64

var byteUnits = []struct {
	suffix string
	size   int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, // the first four are those that String uses
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

// UnmarshalText reads a number with or without a unit, or a percentage of memory.
func (s *ByteSize) UnmarshalText(b []byte) error {
	text := strings.TrimSpace(string(b))
	if p, ok := strings.CutSuffix(text, "%"); ok {
		n, err := strconv.ParseFloat(p, 64)
		if err != nil || !(n > 0 && n <= 100) {
			return fmt.Errorf("%q is not a share of memory; write 1%% to 100%%", text)
		}
		*s = ByteSize(float64(memoryLimit()) * n / 100)
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

// Secret is a string that is never printed. fmt cannot know that of an unexported field, so it belongs into exported ones.
type Secret string

// String returns stars.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "***"
}

// Format writes stars, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) } //nolint:errcheck // fmt collects the errors

// MarshalText returns String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes the text as it is.
func (s *Secret) UnmarshalText(b []byte) error {
	*s = Secret(b)
	return nil
}

// Endpoint is the address that a listener binds: `localhost:4317`, `:4317`, `[::1]:4317`; port 0 takes any free one. It is one of TCP, or,
// in a field with the tag `network:"udp"`, one of UDP. Two listeners of one file on the same address are a load error.
type Endpoint string

// String returns the address.
func (e Endpoint) String() string { return string(e) }

// MarshalText returns String.
func (e Endpoint) MarshalText() ([]byte, error) { return []byte(e), nil }

// UnmarshalText checks that the text is host:port.
func (e *Endpoint) UnmarshalText(b []byte) error {
	host, port, err := net.SplitHostPort(string(b))
	if err != nil {
		return fmt.Errorf("%q is not an address; write host:port, for example localhost:4317", b)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q: port %q is not a number from 0 to 65535", b, port)
	}
	if strings.ContainsAny(host, "/ ") {
		return fmt.Errorf("%q: %q is not a host; write host:port without a scheme", b, host)
	}
	*e = Endpoint(b)
	return nil
}

// Optional is a block that does something only when the file has its key, be it empty: `protocols: {grpc: }`. Its defaults are there
// either way.
type Optional[T any] struct {
	on    bool
	value T
}

// Absent returns a block that is off until the file has its key, with the values it then starts from.
func Absent[T any](defaults T) Optional[T] { return Optional[T]{value: defaults} }

// Present returns a block that is on, for defaults that want it and for tests.
func Present[T any](value T) Optional[T] { return Optional[T]{on: true, value: value} }

// Get returns the block, and whether it is on.
func (o Optional[T]) Get() (T, bool) { return o.value, o.on }

// optional is what the loader needs of an Optional, whatever its T.
type optional interface {
	TurnOn() (value any) // a pointer to the block
	inner() (value any, on bool)
}

// TurnOn is called by the loader when the key is present, and returns a pointer to the block.
func (o *Optional[T]) TurnOn() any {
	o.on = true
	return &o.value
}

func (o *Optional[T]) inner() (any, bool) { return &o.value, o.on }

// KeyError is what a config's Validate returns for a mistake in one of its keys; several are joined with errors.Join. Key is the path
// below the config, with `::` between parts (`protocols::grpc::max_streams`); "" is the config itself.
type KeyError struct{ Key, Msg string }

// Error returns the message.
func (e *KeyError) Error() string { return e.Msg }

// BadKey makes a *KeyError.
func BadKey(key, format string, args ...any) error {
	return &KeyError{Key: key, Msg: fmt.Sprintf(format, args...)}
}

// Validator is a config, or a part of one, that checks what its types cannot. Validate reports all mistakes, see [BadKey].
type Validator interface{ Validate() error }

// Limited is the config of a component that does for others what want is, an interface that a [Ref] asks for, only with certain settings.
// Lacks returns what is missing of them, nil if nothing is.
type Limited interface {
	Lacks(want reflect.Type) error
}
