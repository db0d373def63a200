package scan

import (
	"errors"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// namedSource is a source that has nothing but a name.
type namedSource struct{ source.Source }

func (namedSource) Name() string { return "segment 3" }

func TestDamageReason(t *testing.T) {
	src := namedSource{}
	var reported []*source.DamageError
	d := damage{report: func(e *source.DamageError) { reported = append(reported, e) }}
	other := errors.New("the disk is gone")
	joined := errors.Join(&source.DamageError{File: "seg/a", Part: "block 1", Rows: 10, Err: other},
		errors.Join(&source.DamageError{File: "seg/b", Part: "block 2", Err: other}, other))
	if err := d.note(src, "block 2", 5, joined); !errors.Is(err, other) || errors.As(err, new(*source.DamageError)) {
		t.Errorf("what is no damage: %v", err)
	}
	if err := d.note(src, "block 7", 3, ErrReference); err != nil {
		t.Errorf("a corrupt row: %v", err)
	}
	if err := d.note(src, "block 2", 5, &source.DamageError{File: "seg/a", Part: "block 1", Rows: 10, Err: other}); err != nil {
		t.Errorf("known damage: %v", err)
	}
	if len(reported) != 3 || !errors.Is(reported[2], rows.ErrCorrupt) || reported[2].File != "segment 3" {
		t.Errorf("reported: %v", reported)
	}
	if got := d.reason(); !strings.Contains(got, "18 spans") || !strings.Contains(got, "seg/a, seg/b, segment 3") {
		t.Errorf("reason: %q", got)
	}
}
