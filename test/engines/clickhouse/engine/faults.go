package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"
)

// Fault is what goes wrong with the next statements that match: a delay, and then an exception, a
// closed connection, or neither.
type Fault struct {
	Match string        `json:"match"` // regular expression without regard to case; "" is INSERT
	Count int           `json:"count"` // number of statements; 0 is 1
	After bool          `json:"after"` // the engine executes the statement first
	Delay time.Duration `json:"delay"`
	Code  int           `json:"code"` // code of the exception that is the answer; 0 is none
	Cut   bool          `json:"cut"`  // closes the connection without an answer
}

// Inject adds a fault. The first fault that matches a statement applies. Faults end with
// [Server.Heal] and when the process ends.
func (s *Server) Inject(tb testing.TB, f Fault) {
	tb.Helper()
	body, err := json.Marshal(f)
	if err != nil {
		tb.Fatal(err)
	}
	s.faults(tb, http.MethodPost, body)
}

// Heal removes all faults.
func (s *Server) Heal(tb testing.TB) {
	tb.Helper()
	s.faults(tb, http.MethodDelete, nil)
}

// FaultsHit returns how many statements faults have applied to since the process started.
func (s *Server) FaultsHit(tb testing.TB) int {
	tb.Helper()
	return s.faults(tb, http.MethodGet, nil)
}

func (s *Server) faults(tb testing.TB, method string, body []byte) (hits int) {
	tb.Helper()
	req, err := http.NewRequest(method, "http://"+s.http+"/_test/faults", bytes.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	resp, err := s.client().Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		_, err = fmt.Sscan(string(text), &hits)
	}
	if err != nil {
		tb.Fatalf("%v: %s", err, text)
	}
	return hits
}

// Pause stops the process without closing its connections, until [Server.Resume]: connections are
// accepted by the operating system, and nothing answers.
func (s *Server) Pause(tb testing.TB) {
	tb.Helper()
	s.signal(tb, syscall.SIGSTOP)
	for stopped := false; !stopped; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID()))
		if err != nil {
			tb.Fatal(err)
		}
		stopped = bytes.Contains(stat, []byte(") T ")) // the state follows the name
	}
}

// Resume continues a process that is paused.
func (s *Server) Resume(tb testing.TB) { s.signal(tb, syscall.SIGCONT) }

func (s *Server) signal(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		tb.Fatal(err)
	}
}
