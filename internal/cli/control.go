package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

// A control is the control plane as a command uses it: its API, and the tenant
// and namespace that the command is about.
type control struct {
	*apiclient.Client
	tenant    string
	namespace string
}

// namespaceKey names the namespace.
func (c *control) namespaceKey() model.NamespaceKey {
	return model.NamespaceKey{TenantID: c.tenant, Namespace: c.namespace}
}

func (c *control) stream(name string) model.StreamKey {
	return model.StreamKey{TenantID: c.tenant, Namespace: c.namespace, Stream: name}
}

func (c *control) cache(name string) model.CacheKey {
	return model.CacheKey{TenantID: c.tenant, Namespace: c.namespace, Cache: name}
}

// shard names a shard of a stream, or of a cache.
func (c *control) shard(name string, shard uint32, ofCache bool) model.ShardKey {
	kind := model.StreamShard
	if ofCache {
		kind = model.CacheShard
	}
	return model.ShardKey{TenantID: c.tenant, Namespace: c.namespace, Stream: name, Shard: shard, Kind: kind}
}

// controlVerb makes cmd a command that works against the control plane and
// takes between least and most arguments.
func (a *App) controlVerb(cmd *cobra.Command, least, most int, run func(ctx context.Context, c *control, args []string) error) *cobra.Command {
	cmd.Args = positional(least, most)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Annotations = map[string]string{connects: "yes"}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.controlPlane(cmd)
		if err != nil {
			return err
		}
		defer c.CloseIdle()
		return explainControl(cmd.Context(), run(cmd.Context(), c, args))
	}
	return cmd
}

// tenantVerb is controlVerb for what is inside a tenant, which the connection
// must name.
func (a *App) tenantVerb(cmd *cobra.Command, least, most int, run func(ctx context.Context, c *control, args []string) error) *cobra.Command {
	return a.controlVerb(cmd, least, most, func(ctx context.Context, c *control, args []string) error {
		if c.tenant == "" {
			return noTenant()
		}
		return run(ctx, c, args)
	})
}

func noTenant() error {
	return usageError("no tenant to act in").hinting("give --tenant, or choose a context that names one")
}

// defaultNamespace is where streams and caches are unless another is said.
const defaultNamespace = "default"

// controlPlane is a client of the control plane that flags, environment and
// context name.
func (a *App) controlPlane(cmd *cobra.Command) (*control, error) {
	by, err := a.resolve(cmd.Flags())
	if err != nil {
		return nil, err
	}
	api, err := a.openAPI(&by, by.ControlPlaneURL)
	if err != nil {
		return nil, err
	}
	if by.ControlPlaneToken == "" && by.ControlPlaneTokenFile == "" {
		return nil, usageError("no token for the control plane").
			hinting("\"felix login\" gets one; or give --controlplane-token-file, or choose a context that names one")
	}
	return &control{Client: api, tenant: by.Tenant, namespace: orDefault(by.Namespace, defaultNamespace)}, nil
}

// openAPI makes a client of the control plane at url that shows the token of
// the connection where a call needs one.
func (a *App) openAPI(by *resolved, url string) (*apiclient.Client, error) {
	if url == "" {
		return nil, usageError("no control plane to talk to").
			hinting("give --controlplane-url, or choose a context that names one; \"felix dev\" has one inside")
	}
	options := apiclient.Options{URL: url, UserAgent: "felix-cli", Retry: apiclient.Retry{Attempts: 4}}
	if by.ControlPlaneCAFile != "" {
		pem, err := readSmall(by.ControlPlaneCAFile, maxAuthorityBytes)
		if err != nil {
			return nil, usageError("read the authorities of the control plane: %w", err)
		}
		options.CAPEM = pem
	}
	connection := *by
	options.Token = func(ctx context.Context) (string, error) {
		return a.freshToken(ctx, &connection, apiclient.AudienceControlPlane)
	}
	api, err := apiclient.New(options)
	if err != nil {
		return nil, usageError("control plane: %w", err)
	}
	return api, nil
}

// explainControl gives an error of the control plane its exit code and, where
// there is one, advice. An error that was explained before stays as it is.
func explainControl(ctx context.Context, err error) error {
	refused, isRefusal := errors.AsType[*apiclient.Error](err)
	switch {
	case err == nil || isType[*Error](err):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case isCertificateError(err):
		return (&Error{Exit: ExitUnreachable, Err: err}).
			hinting("the control plane is not vouched for by the trusted authorities: check --controlplane-ca-file, and the host in --controlplane-url")
	case isType[*apiclient.UnreachableError](err):
		return (&Error{Exit: ExitUnreachable, Err: err}).hinting("is the control plane running, and is --controlplane-url right?")
	case !isRefusal:
		return err
	}
	out := &Error{Exit: ExitRefused, Err: err}
	switch refused.Status {
	case 400, 422:
		out.Exit = ExitUsage
	case 401:
		return out.hinting("the token is not accepted here: it may have expired, or be one for brokers; \"felix token inspect\" shows it, \"felix login\" gets another")
	case 403:
		return out.hinting("\"felix whoami\" shows what the token allows")
	case 404:
		out.Exit = ExitNotFound
	case 503:
		return out.hinting("it cannot be done just now; a change may still happen, so look before you repeat it")
	}
	return out
}
