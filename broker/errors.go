package broker

import (
	"errors"
	"fmt"

	"github.com/felixlog/felix/broker/admission"
	"github.com/felixlog/felix/broker/stream"
)

// ErrClosed refuses work of a broker that drains or is closed.
var ErrClosed = errors.New("broker is shutting down")

// An OverloadedError refuses a publish of which nothing was kept.
type OverloadedError = admission.OverloadedError

// The reasons of an [OverloadedError].
const (
	QueueFull   = admission.QueueFull
	BytesFull   = admission.BytesFull
	TenantQuota = admission.TenantQuota
)

// A Kind is a sort of named thing.
type Kind string

// The kinds a broker registers.
const (
	KindTenant    Kind = "tenant"
	KindNamespace Kind = "namespace"
	KindStream    Kind = "stream"
	KindCache     Kind = "cache"
)

// What a publish to a durable or numbered stream may answer (package stream).
type (
	// RefusedError refuses a batch of an idempotent producer.
	RefusedError = stream.RefusedError
	// OffsetMismatchError refuses a conditional publish.
	OffsetMismatchError = stream.OffsetMismatchError
	// UnavailableError refuses a request to a shard that does not serve it now.
	UnavailableError = stream.UnavailableError
	// StorageFullError refuses a publish for which the disk has no room.
	StorageFullError = stream.StorageFullError
	// StorageFailedError leaves unknown whether a publish was kept.
	StorageFailedError = stream.StorageFailedError
	// NeedsLogError refuses what only a durable stream can do.
	NeedsLogError = stream.NeedsLogError
)

// A NotFoundError says that a name is not registered.
type NotFoundError struct {
	Kind Kind
	// Name is the full name, its parts joined by slashes.
	Name string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s not found: %s", e.Kind, e.Name) }

// A ConflictError refuses to register a name that is registered with other
// options: remove it first.
type ConflictError struct {
	Kind Kind
	Name string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s %s is registered with other options", e.Kind, e.Name)
}

// A StorageRequiredError refuses to register a durable stream or cache on a
// broker without storage: it is never downgraded to memory.
type StorageRequiredError struct {
	Kind Kind
	// Name is the full name.
	Name string
}

func (e *StorageRequiredError) Error() string {
	return fmt.Sprintf("%s %s is durable and this broker has no storage", e.Kind, e.Name)
}

// A TenantMismatchError refuses a publish of one tenant's identity to another
// tenant's stream.
type TenantMismatchError struct {
	Identity, Stream string
}

func (e *TenantMismatchError) Error() string {
	return fmt.Sprintf("identity of tenant %s publishes to a stream of tenant %s", e.Identity, e.Stream)
}
