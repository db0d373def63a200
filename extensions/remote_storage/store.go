package remotestorage

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// storeService serves everything that a store can do to other processes of this program.
type storeService struct {
	*readers
	store       Store
	allowDelete bool
	showUsage   bool // clients are not single tenants
	feeds       *feeds
}

func registerStore(srv *server.GRPC, r *readers, f *feeds, store Store, c *Config) {
	s := &storeService{readers: r, store: store, allowDelete: c.AllowDelete, showUsage: !c.SeparatesTenants(), feeds: f}
	desc := grpc.ServiceDesc{ServiceName: storewire.Service, HandlerType: (*any)(nil)}
	for _, m := range methods() {
		desc.Streams = append(desc.Streams, grpc.StreamDesc{StreamName: m.name, ServerStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error {
				var question server.Raw
				if err := stream.RecvMsg(&question); err != nil {
					return err
				}
				return m.serve(s, question, stream)
			}})
	}
	srv.RegisterService(&desc, s)
}

// method is a method of the store service.
type method struct {
	name  string
	wants reflect.Type // interface of package tracestore that the store needs; nil: none
	serve func(s *storeService, question []byte, stream grpc.ServerStream) error
}

// asked is the store that the function of a method reads from.
type asked[T any] struct {
	*storeService
	tenant string
	store  T
}

// streaming returns a method that responds to a request of type Q with messages from a store with
// the interface T.
func streaming[T, Q any](name string, f func(ctx context.Context, of asked[T], q *Q, send sender) error) method {
	return method{name, reflect.TypeFor[T](), func(s *storeService, question []byte, stream grpc.ServerStream) error {
		return s.read(stream.Context(), func(ctx context.Context, tenant string) error {
			store, ok := tracestore.As[T](ctx, tenant, s.store)
			if !ok {
				return storeStatus(tracestore.ErrUnsupported)
			}
			if err := s.refuses(reflect.TypeFor[T]()); err != nil {
				return err
			}
			memory, err := tracestore.Reserve(ctx, int64(len(question)))
			if err != nil {
				return err
			}
			defer memory.Release()
			q := new(Q)
			if err := storewire.Only(storewire.NewQuestion(question, memory), q); err != nil {
				return storeStatus(err)
			}
			return storeStatus(f(ctx, asked[T]{s, tenant, store}, q, sendTo(stream)))
		})
	}}
}

// sender sends a message in pieces.
type sender func(message [][]byte) error

func sendTo(stream grpc.ServerStream) sender {
	return func(message [][]byte) error { return stream.SendMsg(server.Pieces(message)) }
}

// sendValue sends a message with one value.
func sendValue[T any](send sender, v *T) error {
	var e storewire.Encoder
	if err := storewire.Append(&e, v); err != nil {
		return err
	}
	return send(e.Take())
}

// answering is like streaming, but for a single response of type A, which it also sends if it comes
// with a DamagedError.
func answering[T, Q, A any](name string, f func(ctx context.Context, of asked[T], q *Q) (A, error)) method {
	return streaming(name, func(ctx context.Context, of asked[T], q *Q, send sender) error {
		// Reserve memory before the call: it may delete spans.
		memory, err := tracestore.Reserve(ctx, int64(of.chunk))
		if err != nil {
			return err
		}
		defer memory.Release()
		answer, damage := f(ctx, of, q)
		if damaged := (*tracestore.DamagedError)(nil); damage != nil && !errors.As(damage, &damaged) {
			return damage
		}
		if err := storewire.Send(&answer, of.chunk, memory, func(part []byte) error { return send([][]byte{part}) }); err != nil {
			return err
		}
		return damage
	})
}

// hello answers the method Capabilities.
func hello(s *storeService, question []byte, stream grpc.ServerStream) error {
	return s.read(stream.Context(), func(ctx context.Context, tenant string) error {
		var client storewire.Hello
		if err := storewire.Small(question, &client); err != nil {
			return storeStatus(err)
		}
		return sendValue(sendTo(stream), &storewire.Capabilities{
			Version: min(client.Version, storewire.Version), Interfaces: s.interfaces(ctx, tenant)})
	})
}

// interfaces returns the names of the interfaces that the store supports and the configuration
// allows.
func (s *storeService) interfaces(ctx context.Context, tenant string) (names []string) {
	for _, m := range methods() {
		if m.wants != nil && s.refuses(m.wants) == nil && tracestore.Supports(ctx, tenant, s.store, m.wants) {
			names = append(names, m.wants.Name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// refuses returns the status for calls of an interface that the configuration does not allow.
func (s *storeService) refuses(wants reflect.Type) error {
	switch {
	case wants == reflect.TypeFor[tracestore.UsageReporter]() && !s.showUsage,
		wants == reflect.TypeFor[tracestore.Follower]() && s.feeds.limit() == 0:
		return storeStatus(tracestore.ErrUnsupported)
	case wants == reflect.TypeFor[tracestore.Deleter]() && !s.allowDelete:
		return withReason(codes.PermissionDenied, errDeleteNotAllowed, storewire.ReasonNotAllowed)
	}
	return nil
}

var errDeleteNotAllowed = errors.New(
	"deleting spans through remote storage is not allowed: set allow_delete: true in the configuration of remote_storage")

// storeStatus returns the status for an error of a store, with a reason for errors that the client
// distinguishes. It leaves errors of the context to the caller.
func storeStatus(err error) error {
	var damaged *tracestore.DamagedError
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, tracestore.ErrUnsupported):
		return status.Error(codes.Unimplemented, text(err.Error()))
	case errors.Is(err, tracestore.ErrNotAllowed):
		return withReason(codes.PermissionDenied, err, storewire.ReasonNotAllowed)
	case errors.Is(err, tracestore.ErrBadDeletion):
		return withReason(codes.InvalidArgument, err, storewire.ReasonBadDeletion)
	case errors.As(err, &damaged):
		damage, derr := storewire.Encode(storewire.DamageOf(damaged))
		if derr != nil { // cannot happen
			return derr
		}
		return withReason(codes.DataLoss, err, storewire.ReasonDamaged, wrapperspb.Bytes(damage))
	case errors.Is(err, storewire.ErrInvalid):
		return status.Error(codes.InvalidArgument, text(err.Error()))
	}
	s := pipeline.GRPCStatus(err)
	if _, ok := status.FromError(err); !ok && s.Code() == codes.Unavailable { // the default of unknown errors
		return status.Error(codes.Internal, text(err.Error()))
	}
	return s.Err()
}

func withReason(code codes.Code, err error, reason string, more ...protoadapt.MessageV1) error {
	s := status.New(code, text(err.Error()))
	info := &errdetails.ErrorInfo{Reason: reason, Domain: storewire.Domain}
	detailed, derr := s.WithDetails(append([]protoadapt.MessageV1{info}, more...)...)
	if derr != nil { // cannot happen
		return s.Err()
	}
	return detailed.Err()
}
