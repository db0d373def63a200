package tracestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ReasonKind is the kind of a [Reason]. Code that distinguishes reasons must use it, not the text.
type ReasonKind uint8

// Kinds of reasons. They have the same numbers in the store service.
const (
	ReasonOther       ReasonKind = iota // none of the kinds below, for example the error that ended a search
	ReasonUnread                        // the caller ended the iteration over the results early
	ReasonBudget                        // a Budget, or a server's limit for one query, is exhausted
	ReasonTime                          // the deadline of the query has passed or was near
	ReasonLimit                         // a limit of the result, or of the memory for queries, is exceeded
	ReasonDamage                        // data is damaged, lost or cannot be read
	ReasonUnavailable                   // a store or a part of it does not respond
)

// Reason says why a result is incomplete.
type Reason struct {
	Kind ReasonKind
	// Store is the name of the store that the reason is about, if several stores were asked.
	Store string
	// Text is for users: code must not depend on it.
	Text string
}

// Reasons says why a result is incomplete; a result without reasons is complete. Result types embed
// it.
type Reasons []Reason

// Because returns one reason, or none if the text is "".
func Because(kind ReasonKind, text string) Reasons {
	if text == "" {
		return nil
	}
	return Reasons{{Kind: kind, Text: text}}
}

// BecauseOf returns an error as a reason.
func BecauseOf(err error) Reasons { return Reasons{{Kind: KindOf(err), Text: err.Error()}} }

// KindOf returns the kind of a reason that is an error.
func KindOf(err error) ReasonKind {
	var damaged *DamagedError
	switch {
	case errors.As(err, &damaged):
		return ReasonDamage
	case errors.Is(err, context.DeadlineExceeded):
		return ReasonTime
	case IsOutOfMemory(err):
		return ReasonLimit
	}
	return ReasonOther
}

// BudgetSpent is the reason of a search that ended because Budget.Spans was exhausted.
func BudgetSpent(examined int) Reasons {
	return Because(ReasonBudget, fmt.Sprintf("stopped after examining %d spans; narrow the search or the time range", examined))
}

// Unread is the outcome of results that were not read to the end.
func Unread() Outcome {
	return Outcome{Reasons: Because(ReasonUnread, "the results were not read to the end")}
}

// Complete reports whether nothing is missing.
func (r Reasons) Complete() bool { return len(r) == 0 }

// Add adds the reasons that are not known.
func (r *Reasons) Add(more ...Reason) {
	for _, one := range more {
		known := func(k Reason) bool { return k.Store == one.Store && k.Text == one.Text }
		if !slices.ContainsFunc(*r, known) {
			*r = append(slices.Clip(*r), one) // answers may share them
		}
	}
}

// Has reports whether there is a reason of a kind.
func (r Reasons) Has(kind ReasonKind) bool {
	return slices.ContainsFunc(r, func(one Reason) bool { return one.Kind == kind })
}

// Without returns the reasons except the given kinds.
func (r Reasons) Without(kinds ...ReasonKind) (left Reasons) {
	for _, one := range r {
		if !slices.Contains(kinds, one.Kind) {
			left = append(left, one)
		}
	}
	return left
}

// Of returns the reasons with the name of a store. If a reason already names a store, that name
// becomes part of the text.
func (r Reasons) Of(store string) (named Reasons) {
	for _, one := range r {
		named = append(named, Reason{Kind: one.Kind, Store: store, Text: Reasons{one}.Text()})
	}
	return named
}

// Text describes what is missing, for users. It is "" if nothing is missing.
func (r Reasons) Text() string {
	var text strings.Builder
	store := ""
	for i, one := range r {
		if i > 0 {
			text.WriteString("; ")
		}
		if one.Store != store && one.Store != "" {
			text.WriteString("store " + one.Store + ": ")
		}
		store = one.Store
		text.WriteString(one.Text)
	}
	return text.String()
}

// DamagedError is the error of a read that could not return everything because parts of the store
// are damaged. Data that was returned before it is sound.
type DamagedError struct {
	Reasons       // what cannot be read
	Err     error // the cause, if it is known
}

// Damaged returns a DamagedError with a text for users about data that cannot be read. cause may be
// nil.
func Damaged(text string, cause error) *DamagedError {
	return &DamagedError{Because(ReasonDamage, text), cause}
}

// DamageOf returns the reasons of a DamagedError, at least one. It returns any other error
// unchanged.
func DamageOf(err error) (Reasons, error) {
	var damaged *DamagedError
	switch {
	case !errors.As(err, &damaged):
		return nil, err
	case damaged.Complete():
		return Because(ReasonDamage, "a part of the store cannot be read"), nil
	}
	return damaged.Reasons, nil
}

// Error returns the reasons and the cause.
func (e *DamagedError) Error() string {
	if e.Err == nil {
		return e.Text()
	}
	return e.Text() + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Err }
