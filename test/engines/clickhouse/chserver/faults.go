package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"
)

// fault is what goes wrong with the next statements that match.
type fault struct {
	Match string        `json:"match"` // regular expression; "" is INSERT
	Count int           `json:"count"` // of statements; 0 is 1
	After bool          `json:"after"` // the engine executes the statement first
	Delay time.Duration `json:"delay"`
	Code  int           `json:"code"` // of the exception that is the answer; 0 is none
	Cut   bool          `json:"cut"`  // the connection is closed without an answer

	match *regexp.Regexp
}

// errCut says that a connection has to be closed without a response.
var errCut = errors.New("connection cut by a fault")

// faults are the faults to come. Tests control them over HTTP: POST adds a fault, DELETE removes
// all, and every response has the number of statements hit so far.
type faults struct {
	mu   sync.Mutex
	list []*fault
	hits int
}

func (f *faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch r.Method {
	case http.MethodPost:
		var added fault
		err := json.NewDecoder(r.Body).Decode(&added)
		if err == nil {
			added.match, err = regexp.Compile("(?i)" + cmp.Or(added.Match, `^INSERT\s`))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		added.Count = max(added.Count, 1)
		f.list = append(f.list, &added)
	case http.MethodDelete:
		f.list = nil
	}
	fmt.Fprintln(w, f.hits)
}

// take returns the fault of a statement, or nil.
func (f *faults) take(statement string) *fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, next := range f.list {
		if next.Count > 0 && next.match.MatchString(statement) {
			next.Count--
			f.hits++
			return next
		}
	}
	return nil
}

// around runs do with the fault of the statement, if any.
func (f *faults) around(ctx context.Context, statement string, do func() (*result, error)) (*result, error) {
	hit := f.take(statement)
	if hit == nil {
		return do()
	}
	if !hit.After {
		if err := hit.happen(ctx); err != nil {
			return nil, err
		}
		return do()
	}
	out, err := do()
	if err != nil {
		return nil, err
	}
	return out, hit.happen(ctx)
}

func (f *fault) happen(ctx context.Context) error {
	select {
	case <-time.After(f.Delay):
	case <-ctx.Done():
	}
	if f.Cut {
		return errCut
	}
	if f.Code != 0 {
		return &exception{f.Code, fmt.Sprintf("Code: %d. DB::Exception: injected by a test", f.Code)}
	}
	return nil
}
