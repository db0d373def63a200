package grpc

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

var (
	_ tracestore.Provider      = (*exporter)(nil)
	_ tracestore.Aggregator    = (*exporter)(nil)
	_ tracestore.Edges         = (*exporter)(nil)
	_ tracestore.Metrics       = (*exporter)(nil)
	_ tracestore.PathProfiler  = (*exporter)(nil)
	_ tracestore.UsageReporter = (*exporter)(nil)
	_ tracestore.Follower      = (*exporter)(nil)
	_ tracestore.Deleter       = (*exporter)(nil)
)

// provideTimeout is how long Provide waits for a server that does not respond.
const provideTimeout = 2 * time.Second

// Provide implements tracestore.Provider. If the server is this program, it supports what the
// server's store supports, otherwise what the protocol supports.
func (e *exporter) Provide(ctx context.Context, tenant string, wants reflect.Type) any {
	ctx, cancel := context.WithTimeout(e.withReadMetadata(ctx, tenant), provideTimeout)
	defer cancel()
	if c, err := e.server.capabilities(ctx); err == nil && !c.provides(wants) {
		return nil
	}
	return e
}

// provides reports whether the server supports an interface of package tracestore.
func (c *capabilities) provides(wants reflect.Type) bool {
	switch wants {
	case reflect.TypeFor[tracestore.Reader](), reflect.TypeFor[tracestore.Catalog]():
		return true
	case reflect.TypeFor[tracestore.Edges]():
		return c.store == nil || c.store[wants.Name()]
	}
	return c.store[wants.Name()]
}

// storeService returns whether the server has this program's store service. ctx must have the
// metadata of withReadMetadata.
func (e *exporter) storeService(ctx context.Context) (bool, error) {
	c, err := e.server.capabilities(ctx)
	if err != nil {
		return false, e.readError(ctx, err)
	}
	return c.store != nil, nil
}

// requires returns an error unless the server's store has the interface T. ctx must have the
// metadata of withReadMetadata.
func requires[T any](ctx context.Context, e *exporter) error {
	c, err := e.server.capabilities(ctx)
	if err != nil {
		return e.readError(ctx, err)
	}
	if !c.store[reflect.TypeFor[T]().Name()] {
		return fmt.Errorf("%w: remote storage server %s has no such method", tracestore.ErrUnsupported, e.cfg.Endpoint)
	}
	return nil
}

// ask asks a question of the interface T.
func ask[T, A, Q any](ctx context.Context, e *exporter, tenant, method string, question *Q) (answer A, err error) {
	ctx = e.withReadMetadata(ctx, tenant)
	if err := requires[T](ctx, e); err != nil {
		return answer, err
	}
	return askNow[A](ctx, e, method, question)
}

// askNow is like ask for an interface that is not optional. ctx must have the metadata of
// withReadMetadata.
func askNow[A, Q any](ctx context.Context, e *exporter, method string, question *Q) (A, error) {
	answer, err := read[A](ctx, e.store, method, question)
	return answer, e.storeError(ctx, err)
}

// read makes a call and returns the response, even together with an error. The error is a gRPC
// status, or says what is wrong with the response.
func read[A, Q any](ctx context.Context, conn grpc.ClientConnInterface, method string, question *Q) (answer A, err error) {
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return answer, err
	}
	defer memory.Release()
	var message []byte
	failed := receiveStore(ctx, conn, method, question, func(part []byte) error {
		if err := memory.Grow(2 * int64(len(part))); err != nil { // append may double it
			return err
		}
		message = append(message, part...)
		return nil
	})
	if failed != nil && (status.Code(failed) != codes.DataLoss || len(message) == 0) {
		return answer, failed
	}
	d := storewire.NewAnswer(message, memory)
	if err := storewire.Only(d, &answer); err != nil {
		return *new(A), err
	}
	omit(&answer, d)
	return answer, failed
}

// omit adds a reason to a response, if it has reasons, for the fields that this program does not
// know.
func omit[A any](answer *A, d *storewire.Decoder) {
	if a, ok := any(answer).(interface{ Add(...tracestore.Reason) }); ok { // tracestore.Reasons
		a.Add(d.Omitted()...)
	}
}

// receiveStore is like receive for a method of the store service.
func receiveStore[Q any](
	ctx context.Context, conn grpc.ClientConnInterface, method string, question *Q, each func(message []byte) error,
) error {
	request, err := storewire.Encode(question)
	if err != nil {
		return err
	}
	_, err = receive(ctx, conn, storewire.Method(method), (*server.Raw)(&request), each)
	return err
}

// classified is an error of a remote store that matches another error, such as one of package
// tracestore.
type classified struct {
	text          string
	class, status error
}

func (e *classified) Error() string   { return e.text }
func (e *classified) Unwrap() []error { return []error{e.class, e.status} }

// storeError returns the error for an error of the store service, with the class from the store.
func (e *exporter) storeError(ctx context.Context, err error) error {
	var answered interface{ GRPCStatus() *status.Status }
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &answered):
		return err
	}
	s := answered.GRPCStatus()
	reason := ""
	var detail []byte
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *wrapperspb.BytesValue:
			detail = d.GetValue()
		case *errdetails.ErrorInfo:
			if d.GetDomain() == storewire.Domain {
				reason = d.GetReason()
			}
		}
	}
	switch {
	case s.Code() == codes.Unimplemented:
		return fmt.Errorf("%w: %w", tracestore.ErrUnsupported, e.readError(ctx, err))
	case reason == storewire.ReasonDamaged:
		return damageOf(s, detail)
	case reason == storewire.ReasonNotAllowed:
		return &classified{s.Message(), tracestore.ErrNotAllowed, err}
	case reason == storewire.ReasonBadDeletion:
		return &classified{s.Message(), tracestore.ErrBadDeletion, err}
	}
	return e.readError(ctx, err)
}

// damageOf returns the DamagedError of a status.
func damageOf(s *status.Status, detail []byte) error {
	var damage storewire.Damage
	if err := storewire.Only(storewire.NewAnswer(detail, nil), &damage); err != nil {
		return tracestore.Damaged(s.Message(), nil)
	}
	return damage.Damaged()
}
