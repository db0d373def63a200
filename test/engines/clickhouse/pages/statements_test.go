package pages

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// statement is one statement that reads.
type statement struct {
	text string
	time time.Duration // until the end of the response, in which waiting for a processor counts
	rows int64         // read
}

// statementLog is a proxy in front of a server that notes the statements that read.
type statementLog struct {
	address string
	mu      sync.Mutex
	all     []statement
}

func logStatements(tb testing.TB, server string) *statementLog {
	tb.Helper()
	log := &statementLog{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: server})
	transport := &http.Transport{MaxIdleConnsPerHost: 32}
	proxy.Transport = transport
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := r.URL.Query().Get("query")
		if text == "" {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			text, r.Body = string(body), io.NopCloser(bytes.NewReader(body))
		}
		start := time.Now()
		proxy.ServeHTTP(w, r)
		if !strings.HasPrefix(text, "SELECT") {
			return
		}
		var summary struct {
			Rows string `json:"read_rows"`
		}
		_ = json.Unmarshal([]byte(w.Header().Get("X-ClickHouse-Summary")), &summary) // an error has none
		rows, _ := strconv.ParseInt(summary.Rows, 10, 64)
		log.mu.Lock()
		log.all = append(log.all, statement{text[:min(len(text), 1500)], time.Since(start), rows})
		log.mu.Unlock()
	}))
	tb.Cleanup(func() { s.Close(); transport.CloseIdleConnections() })
	log.address = strings.TrimPrefix(s.URL, "http://")
	return log
}

// take returns what was noted since the last call.
func (l *statementLog) take() []statement {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}
