package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

// runner opens sessions and ends the statements of clients that have left.
type runner struct {
	lib   *library
	args  []string
	admin chan *session // the session that ends statements
	marks atomic.Int64
	faults
}

func newRunner(lib *library, args []string) (*runner, error) {
	s, err := lib.open(args...)
	if err != nil {
		return nil, err
	}
	r := &runner{lib: lib, args: args, admin: make(chan *session, 1)}
	r.admin <- s
	return r, nil
}

func (r *runner) close() { (<-r.admin).close() }

// open returns a session with the given current database, "" being the default, and settings. A
// session takes a fraction of a millisecond, so every request over HTTP gets its own.
func (r *runner) open(database string, settings map[string]string) (*session, error) {
	s, err := r.lib.open(r.args...)
	if err != nil {
		return nil, err
	}
	if err := s.set(database, settings); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// set changes the current database, unless it is "", and settings.
func (s *session) set(database string, settings map[string]string) error {
	if database != "" && database != "default" {
		if _, err := s.query("USE "+quoteName(database), "Null", nil); err != nil {
			return err
		}
	}
	if len(settings) == 0 {
		return nil
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		list = append(list, quoteName(name)+" = "+quote(settings[name]))
	}
	_, err := s.query("SET "+strings.Join(list, ", "), "Null", nil)
	return err
}

// run calls do with the statement, which a comment marks, unless a fault prevents it. It ends the
// statement when ctx ends.
func (r *runner) run(ctx context.Context, statement string, do func(statement string) (*result, error)) (*result, error) {
	return r.faults.around(ctx, statement, func() (*result, error) { return r.runMarked(ctx, statement, do) })
}

func (r *runner) runMarked(ctx context.Context, statement string, do func(statement string) (*result, error)) (*result, error) {
	mark := fmt.Sprintf("/* chserver %d */ ", r.marks.Add(1))
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
			r.kill(mark)
		case <-done:
		}
	}()
	out, err := do(mark + statement)
	close(done)
	<-ended
	return out, err
}

func (r *runner) kill(mark string) {
	s := <-r.admin
	defer func() { r.admin <- s }()
	kill := "KILL QUERY WHERE startsWith(query, " + quote(strings.TrimSpace(mark)) + ") ASYNC"
	s.query(kill, "Null", nil) //nolint:errcheck // an error would mean that the statement has ended
}

func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

func quoteName(s string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(s) + "`"
}
