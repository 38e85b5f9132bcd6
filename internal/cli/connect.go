package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/controlplane/apiclient"
)

// How long a command tries to reach one broker, and all of them. A broker on
// the other side of the world answers a handshake within a second.
const (
	dialTimeout    = 3 * time.Second
	connectTimeout = 10 * time.Second
)

// connect reaches the broker that flags, environment and context name. further
// options are what this command asks of its client besides.
func (a *App) connect(ctx context.Context, cmd *cobra.Command, further ...client.Option) (*client.Client, error) {
	by, err := a.resolve(cmd.Flags())
	if err != nil {
		return nil, err
	}
	return a.dial(ctx, &by, further...)
}

// dial opens one client for a connection.
func (a *App) dial(ctx context.Context, by *resolved, further ...client.Option) (*client.Client, error) {
	if len(by.Brokers) == 0 {
		return nil, usageError("no broker to connect to").
			hinting("\"felix dev\" starts one and selects it; or give --brokers, or choose a context")
	}
	for _, broker := range by.Brokers {
		if _, _, err := net.SplitHostPort(broker); err != nil {
			return nil, usageError("broker %q: want host:port", broker)
		}
	}
	if by.Tenant == "" {
		return nil, usageError("no tenant to act in").hinting("give --tenant, or choose a context that names one")
	}
	token, err := a.freshToken(ctx, by, apiclient.AudienceBroker)
	if err != nil {
		return nil, err
	}
	if token == "" {
		return nil, usageError("no token to authenticate with").hinting("give --token-file, or choose a context that names one")
	}
	if (by.ClientCertFile == "") != (by.ClientKeyFile == "") {
		return nil, usageError("a client certificate needs both --client-cert-file and --client-key-file")
	}
	connection := *by
	options := []client.Option{
		client.WithEnvironment(a.tuning()),
		client.WithTenant(by.Tenant),
		client.WithDialTimeout(dialTimeout),
		client.WithTokenProvider(func(ctx context.Context) (string, error) {
			return a.freshToken(ctx, &connection, apiclient.AudienceBroker)
		}),
	}
	if by.Namespace != "" {
		options = append(options, client.WithNamespace(by.Namespace))
	}
	if by.CAFile != "" {
		if _, err := os.Stat(by.CAFile); err != nil {
			return nil, usageError("read the authorities: %w", err)
		}
		options = append(options, client.WithCAFile(by.CAFile))
	}
	if by.ClientCertFile != "" {
		options = append(options, client.WithClientCertificate(by.ClientCertFile, by.ClientKeyFile))
	}
	if by.ServerName != "" {
		options = append(options, client.WithServerName(by.ServerName))
	}
	if by.ALPN {
		options = append(options, client.WithALPN())
	}
	options = append(options, further...)
	patience := min(time.Duration(len(by.Brokers))*dialTimeout, connectTimeout)
	dialCtx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := client.Dial(dialCtx, by.Brokers, options...)
	if err == nil {
		return c, nil
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case isType[*client.UnreachableError](err):
		return nil, unreachable(err, by)
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("no broker answered at %s within %s", strings.Join(by.Brokers, ", "), patience)
		return nil, unreachable(err, by)
	}
	return nil, err
}

// tuning is the environment without the variables that name the connection:
// those were resolved already, and a flag may have beaten them.
func (a *App) tuning() []string {
	resolvedAlready := make(map[string]bool)
	for _, s := range settings() {
		resolvedAlready[s.env] = s.env != ""
	}
	return slices.DeleteFunc(a.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return resolvedAlready[name]
	})
}

// unreachable explains that no broker answered, and what to look at.
func unreachable(err error, by *resolved) error {
	out := &Error{Exit: ExitUnreachable, Err: err}
	switch {
	case isCertificateError(err):
		return out.hinting("the broker is not vouched for by the trusted authorities: check --ca-file (%s) and --server-name (%s)",
			orDefault(by.CAFile, "the system's"), orDefault(by.ServerName, "taken from the address"))
	case by.ContextName == devContext:
		return out.hinting("the context dev says it is there: is \"felix dev\" running?")
	case by.ContextName != "":
		return out.hinting("the context %s says it is there", by.ContextName)
	}
	return out.hinting("\"felix dev\" starts a broker on this machine")
}

// isCertificateError says that a broker was reached and not trusted.
func isCertificateError(err error) bool {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	return unknown || host || invalid || strings.Contains(err.Error(), "x509: ")
}

func orDefault(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// explainClient finds what an error of the client stands for.
func explainClient(err error, told *errorReport) {
	if refusal, ok := errors.AsType[*client.Error](err); ok {
		told.Code = string(refusal.Code)
		if refusal.Retry != client.RetryUnspecified {
			told.Retry = refusal.Retry.String()
		}
	}
	switch {
	case isType[*client.NameError](err):
		told.Exit = ExitUsage
	case isType[*client.UnreachableError](err):
		told.Exit = ExitUnreachable
	case isType[*claimError](err) && told.Code != "":
		explainClaim(err, told)
	case errors.Is(err, client.ErrNotFound):
		told.Exit = ExitNotFound
		told.Hint = "streams and caches are made by an administrator, or on first use where the broker allows it (\"felix dev\" does)"
	case isType[*client.CursorError](err):
		told.Exit = ExitRefused
		told.Hint = "--from earliest begins with the oldest record held"
	case errors.Is(err, client.ErrUnsupported):
		told.Exit = ExitRefused
		told.Hint = "brokers serve this with storage only: felix dev without --memory, or felix broker with --durable-storage-dir"
	case isType[*client.ProducerError](err), isType[*client.RefusedError](err):
		told.Exit = ExitRefused
	case told.Code != "":
		told.Exit = ExitRefused
		if errors.Is(err, client.ErrUnauthenticated) {
			told.Hint = "the broker does not accept the token: check --tenant and --token-file, or whether it expired"
		}
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		told.Error = "interrupted"
	}
}

// explainClaim is for a claim that a broker refused.
func explainClaim(err error, told *errorReport) {
	told.Exit = ExitRefused
	switch {
	case errors.Is(err, client.ErrNotFound):
		told.Exit = ExitNotFound
	case errors.Is(err, client.ErrStaleClaim):
		told.Hint = "\"felix group describe\" shows who holds what"
	}
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
