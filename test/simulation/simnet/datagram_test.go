package simnet

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// datagrams sends n datagrams. Each has one byte, its number. It returns the numbers in the order
// of arrival.
func datagrams(t *testing.T, c Conditions, n byte) (got []byte) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := New(1)
		w.Set(here, there, c)
		from, err := w.Host(here).ListenPacket(t.Context(), "udp", here+":0")
		if err != nil {
			t.Fatal(err)
		}
		to, err := w.Host(there).ListenPacket(t.Context(), "udp", there+":6831")
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if _, err := from.WriteTo([]byte{i}, to.LocalAddr()); err != nil {
				t.Fatal(err)
			}
		}
		to.SetReadDeadline(time.Now().Add(time.Minute))
		for b := make([]byte, 10); ; {
			k, sender, err := to.ReadFrom(b)
			if err != nil {
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatal(err)
				}
				break
			}
			if k != 1 || sender.String() != from.LocalAddr().String() {
				t.Errorf("got %d bytes from %v", k, sender)
			}
			got = append(got, b[0])
		}
		for _, c := range []net.PacketConn{from, to} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return got
}

func TestDatagrams(t *testing.T) {
	if got := datagrams(t, Conditions{Delay: time.Second}, 3); string(got) != "\x00\x01\x02" {
		t.Errorf("got %v", got)
	}
	if got := datagrams(t, Conditions{Down: true}, 3); len(got) != 0 {
		t.Errorf("with a partition, got %v", got)
	}
	if got := datagrams(t, Conditions{Loss: 0.5}, 60); len(got) == 0 || len(got) == 60 {
		t.Errorf("with 50 %% loss, got %d of 60 datagrams", len(got))
	}
	if got := datagrams(t, Conditions{Duplicate: 1}, 3); len(got) != 6 {
		t.Errorf("with duplicates, got %v", got)
	}
	if got := datagrams(t, Conditions{}, receiveBuffer+1); len(got) != receiveBuffer {
		t.Errorf("socket holds %d datagrams, want %d", len(got), receiveBuffer)
	}
	overtaken := false
	got := datagrams(t, Conditions{Jitter: time.Second}, 30)
	for i := range got[1:] {
		overtaken = overtaken || got[i+1] < got[i]
	}
	if !overtaken {
		t.Errorf("datagrams arrived in order despite jitter: %v", got)
	}
}
