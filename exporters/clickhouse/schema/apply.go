package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
)

// Server runs statements. *db.DB implements it.
type Server interface {
	// Exec runs a statement that returns nothing.
	Exec(ctx context.Context, sql string) error
	// Select runs a statement that returns rows.
	Select(ctx context.Context, sql string) (db.Rows, error)
}

// attempts is the number of times that Apply compares the tables with the schema. A statement can
// fail because another program changes the same table at that moment.
const attempts = 5

// Apply creates missing tables and upgrades tables of older versions. Several programs may call it
// at the same time. It returns the statements that changed something.
//
// An error that matches [ErrUnusable] means that the tables do not fit this program. After any
// other error, some tables may be missing, and Apply can be retried.
func (s *Schema) Apply(ctx context.Context, on Server) ([]Statement, error) {
	var done []Statement
	var last error
	for range attempts {
		todo, err := s.Missing(ctx, on)
		if err != nil {
			return done, err
		}
		ran := 0
		ran, last = run(ctx, on, todo)
		if done = append(done, todo[:ran]...); last == nil {
			return done, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return done, last
}

// run runs statements until one fails, and returns how many did not.
func run(ctx context.Context, on Server, list []Statement) (int, error) {
	for i, st := range list {
		if err := on.Exec(ctx, st.SQL); err != nil {
			return i, fmt.Errorf("creating or changing %s: %w", st.Object, err)
		}
	}
	return len(list), nil
}

// Missing returns the statements that Apply would run.
func (s *Schema) Missing(ctx context.Context, on Server) ([]Statement, error) {
	if s.opts.Blind {
		return s.Statements(), nil
	}
	f, err := s.observe(ctx, on)
	if err != nil {
		return nil, err
	}
	return s.plan(f)
}

// Ready returns an error unless the tables have what programs need. Retention and settings may
// differ: the program that creates the tables determines them.
func (s *Schema) Ready(ctx context.Context, on Server) error {
	todo, err := s.Missing(ctx, on)
	todo = slices.DeleteFunc(todo, func(st Statement) bool { return st.tunes })
	if err != nil || len(todo) == 0 || s.opts.Blind {
		return err
	}
	return fmt.Errorf("%w: %s, and %d statements in all; run \"tracing clickhouse schema apply\"", errMissing, todo[0].Object, len(todo))
}

var errMissing = errors.New("tables are missing or old")
