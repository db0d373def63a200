package simnet

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"
)

const here, there = "10.0.0.1", "10.0.0.2"

// TestConnIsANetConn checks that a connection behaves like any other net.Conn.
func TestConnIsANetConn(t *testing.T) {
	nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
		w := newPairOfHosts(Conditions{})
		a, b := w.connect(t)
		return a, b, func() { a.Close(); b.Close() }, nil
	})
}

// pairOfHosts is two machines. b listens on port 80.
type pairOfHosts struct {
	net      *Network
	a, b     *Host
	listener net.Listener
}

func newPairOfHosts(c Conditions) *pairOfHosts {
	w := &pairOfHosts{net: New(1)}
	w.a, w.b = w.net.Host(here), w.net.Host(there)
	w.net.Set(here, there, c)
	w.listener, _ = w.b.Listen(context.Background(), "tcp", there+":80")
	return w
}

func (w *pairOfHosts) connect(t *testing.T) (a, b net.Conn) {
	t.Helper()
	a, err := w.a.Dial(context.Background(), "tcp", there+":80")
	if err != nil {
		t.Fatal(err)
	}
	if b, err = w.listener.Accept(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// inBubble runs a test with two connected machines in fake time.
func inBubble(t *testing.T, c Conditions, f func(t *testing.T, w *pairOfHosts, a, b net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newPairOfHosts(c)
		a, b := w.connect(t)
		f(t, w, a, b)
		a.Close()
		b.Close()
		w.listener.Close()
	})
}

func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// hear checks that the next bytes are the text.
func hear(t *testing.T, c net.Conn, text string) {
	t.Helper()
	b := make([]byte, len(text))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != text {
		t.Fatalf("read %q, %v; want %q", b, err, text)
	}
}

// hearEnd checks that the next read returns only this error.
func hearEnd(t *testing.T, c net.Conn, want error) {
	t.Helper()
	if n, err := c.Read(make([]byte, 10)); n != 0 || !errors.Is(err, want) {
		t.Fatalf("read %d bytes, %v; want %v", n, err, want)
	}
}

func TestDelayAndRate(t *testing.T) {
	inBubble(t, Conditions{Delay: time.Second, Rate: 1000}, func(t *testing.T, _ *pairOfHosts, a, b net.Conn) {
		began := time.Now()
		say(t, a, strings.Repeat("x", 500))
		say(t, a, "y")
		hear(t, b, strings.Repeat("x", 500)+"y")
		if took := time.Since(began); took != 1501*time.Millisecond {
			t.Errorf("501 bytes took %v", took)
		}
	})
}

// TestCloseComesLast checks that one end reads what the other end wrote before Close, and then EOF.
func TestCloseComesLast(t *testing.T) {
	inBubble(t, Conditions{Delay: time.Second}, func(t *testing.T, _ *pairOfHosts, a, b net.Conn) {
		say(t, a, "last words")
		a.Close()
		hear(t, b, "last words")
		hearEnd(t, b, io.EOF)
		if _, err := b.Write([]byte("anyone?")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("writing to a closed end: %v", err)
		}
	})
}

// TestWindow checks that a write blocks while the window is full.
func TestWindow(t *testing.T) {
	inBubble(t, Conditions{}, func(t *testing.T, _ *pairOfHosts, a, b net.Conn) {
		text := strings.Repeat("x", window+1)
		a.SetWriteDeadline(time.Now().Add(time.Second))
		if n, err := io.WriteString(a, text); n != window || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("wrote %d bytes, %v", n, err)
		}
		hear(t, b, text[:window])
	})
}

// TestPartition checks that a partition delays bytes and loses none.
func TestPartition(t *testing.T) {
	inBubble(t, Conditions{}, func(t *testing.T, w *pairOfHosts, a, b net.Conn) {
		w.net.Set(here, there, Conditions{Down: true})
		say(t, a, "hello")
		b.SetReadDeadline(time.Now().Add(time.Minute))
		hearEnd(t, b, os.ErrDeadlineExceeded)
		b.SetReadDeadline(time.Time{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.a.Dial(ctx, "tcp", there+":80"); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("dialing into a partition: %v", err)
		}
		time.AfterFunc(time.Second, func() { w.net.Set(here, there, Conditions{}) })
		hear(t, b, "hello")
	})
}

// TestCut checks that a cut resets a connection in the middle of a write.
func TestCut(t *testing.T) {
	inBubble(t, Conditions{}, func(t *testing.T, w *pairOfHosts, a, b net.Conn) {
		w.net.Cut(there, here, 7)
		say(t, a, "1234")
		say(t, b, "56")
		say(t, a, "789")
		hear(t, b, "12347")
		hearEnd(t, b, syscall.ECONNRESET)
		hearEnd(t, a, syscall.ECONNRESET)
	})
}

func TestRefusal(t *testing.T) {
	inBubble(t, Conditions{}, func(t *testing.T, w *pairOfHosts, a, b net.Conn) {
		w.net.Set(here, there, Conditions{Refuse: true})
		if _, err := w.a.Dial(t.Context(), "tcp", there+":80"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dialing: %v", err)
		}
		say(t, a, "old connections stay")
		hear(t, b, "old connections stay")
	})
}

// TestKill checks that the end of a program closes its connections and frees its ports.
func TestKill(t *testing.T) {
	inBubble(t, Conditions{}, func(t *testing.T, w *pairOfHosts, a, b net.Conn) {
		say(t, b, "bye")
		w.b.Kill()
		hear(t, a, "bye")
		hearEnd(t, a, io.EOF)
		hearEnd(t, b, net.ErrClosed)
		if _, err := w.a.Dial(t.Context(), "tcp", there+":80"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dialing a killed program: %v", err)
		}
		if _, err := w.b.Dial(t.Context(), "tcp", here+":80"); !errors.Is(err, syscall.ENETDOWN) {
			t.Errorf("dialing from a killed program: %v", err)
		}
		if _, err := w.net.Host(there).Listen(t.Context(), "tcp", there+":80"); err != nil {
			t.Errorf("listening after a restart: %v", err)
		}
	})
}

// TestPowerCut checks that a machine without power does not answer, and that it resets old
// connections after its restart.
func TestPowerCut(t *testing.T) {
	inBubble(t, Conditions{}, func(t *testing.T, w *pairOfHosts, a, _ net.Conn) {
		w.b.CutPower()
		say(t, a, "hello?")
		a.SetReadDeadline(time.Now().Add(time.Hour))
		hearEnd(t, a, os.ErrDeadlineExceeded)
		a.SetReadDeadline(time.Time{})
		w.net.Host(there)
		hearEnd(t, a, syscall.ECONNRESET)
	})
}

// TestStaleConnection checks that an idle connection stays open after a power cut of the other
// machine, and that it is reset at the first write after the restart.
func TestStaleConnection(t *testing.T) {
	inBubble(t, Conditions{}, func(t *testing.T, w *pairOfHosts, a, _ net.Conn) {
		w.b.CutPower()
		w.net.Host(there)
		a.SetReadDeadline(time.Now().Add(time.Hour))
		hearEnd(t, a, os.ErrDeadlineExceeded)
		if _, err := a.Write([]byte("hello?")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("writing to an earlier incarnation: %v", err)
		}
	})
}

// TestDialWaitsForPower checks that a dial to a machine without power succeeds after its restart.
func TestDialWaitsForPower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPairOfHosts(Conditions{})
		w.b.CutPower()
		time.AfterFunc(time.Second, func() {
			next := w.net.Host(there)
			if _, err := next.Listen(context.Background(), "tcp", there+":80"); err != nil {
				t.Error(err)
			}
		})
		if _, err := w.a.Dial(t.Context(), "tcp", there+":80"); err != nil {
			t.Error(err)
		}
	})
}
