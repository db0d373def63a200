package tracestore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
)

func TestReasons(t *testing.T) {
	var r Reasons
	if !r.Complete() || r.Text() != "" || r.Has(ReasonOther) || Because(ReasonDamage, "") != nil {
		t.Errorf("no reasons: complete %t, text %q", r.Complete(), r.Text())
	}
	r = Because(ReasonBudget, "stopped; narrow the search").Of("a")
	r.Add(Because(ReasonDamage, "file 1 is gone").Of("a")...)
	r.Add(Because(ReasonDamage, "file 1 is gone").Of("b")...)
	r.Add(Reason{Kind: ReasonOther, Store: "a", Text: "file 1 is gone"}) // known
	shared := r
	r.Add(Reason{Kind: ReasonLimit, Text: "there are more"})
	shared.Add(Reason{Kind: ReasonLimit, Text: "other"})
	const want = "store a: stopped; narrow the search; file 1 is gone; store b: file 1 is gone; there are more"
	if r.Complete() || r.Text() != want {
		t.Errorf("complete %t, text %q, want %q", r.Complete(), r.Text(), want)
	}
	if !r.Has(ReasonBudget) || r.Has(ReasonTime) {
		t.Errorf("kinds of %+v", r)
	}
	left := r.Without(ReasonBudget, ReasonLimit)
	if got, want := left.Text(), "store a: file 1 is gone; store b: file 1 is gone"; got != want || left.Has(ReasonBudget) {
		t.Errorf("without the budget: %q, want %q", got, want)
	}
	if unknown := BecauseOf(errors.New("")).Of("a"); unknown.Complete() || unknown.Text() != "store a: " {
		t.Errorf("an error without text: %+v", unknown)
	}
	far := Reasons{{ReasonDamage, "far", "store a: file 1 is gone"}, {ReasonDamage, "far", "store b: file 1 is gone"}}
	if got := left.Of("far"); !reflect.DeepEqual(got, far) {
		t.Errorf("of a store: %+v, want %+v", got, far)
	}
}

func TestDamagedError(t *testing.T) {
	cause := errors.New("checksum mismatch")
	err := fmt.Errorf("reading: %w", Damaged("block 3 cannot be read", cause))
	if want := "reading: block 3 cannot be read: checksum mismatch"; err.Error() != want || !errors.Is(err, cause) {
		t.Errorf("error %q, want %q", err, want)
	}
	if r, other := DamageOf(err); other != nil || !reflect.DeepEqual(r, Because(ReasonDamage, "block 3 cannot be read")) {
		t.Errorf("reasons %+v, error %v", r, other)
	}
	if r, other := DamageOf(&DamagedError{}); other != nil || r.Complete() {
		t.Errorf("reasons %+v, error %v of damage without reasons", r, other)
	}
	if r, other := DamageOf(cause); other != cause || r != nil {
		t.Errorf("reasons %+v of another error, %v", r, other)
	}
	for err, want := range map[error]ReasonKind{err: ReasonDamage, cause: ReasonOther, context.DeadlineExceeded: ReasonTime} {
		if got := KindOf(err); got != want {
			t.Errorf("kind of %v is %d, want %d", err, got, want)
		}
	}
}
