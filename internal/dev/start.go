package dev

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/internal/brokerservice"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/controlplane"
	"github.com/felixlog/felix/internal/node"
	"github.com/felixlog/felix/internal/telemetry"
)

// A Server is a running development broker with its control plane.
type Server struct {
	*brokerservice.Service
	plane  *controlplane.Instance
	unlock func()
	cfg    *config.Config
	trust  trust
	id     identity
	dir    string
}

// Start runs a development broker. It listens when Start returns, and lives
// until [Server.Shutdown]. A port that is in use is a [*PortTakenError].
func Start(ctx context.Context, o Options) (*Server, error) {
	if err := checkPorts(procFS(), at(o.Port), at(o.HTTPPort), at(o.APIPort)); err != nil {
		return nil, err
	}
	certificates, id, err := prepare(o.Dir)
	if err != nil {
		return nil, err
	}
	cfg, warnings, err := settings(&o)
	if err != nil {
		return nil, err
	}
	unlock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	started := false
	defer func() {
		if !started {
			unlock()
		}
	}()
	log := o.Log
	if log == nil {
		log = io.Discard
	}
	logger, err := telemetry.NewLogger(log, cfg.Process.Log, string(cfg.Process.LogFormat))
	if err != nil {
		return nil, err
	}
	for _, warning := range warnings {
		logger.Warn(warning)
	}
	plane, err := startControlPlane(ctx, &o, &id, logger)
	if err != nil {
		return nil, portErrorOf(err, o)
	}
	cfg.Cluster.URL, cfg.Cluster.Token = "http://"+plane.Addr(), id.control
	api, err := apiclient.New(apiclient.Options{URL: cfg.Cluster.URL, Token: func(context.Context) (string, error) { return id.control, nil }})
	if err != nil {
		return nil, errors.Join(err, plane.Shutdown(context.WithoutCancel(ctx)))
	}
	var core atomic.Pointer[broker.Broker]
	first := &creator{api: api, durable: cfg.Storage.Dir != "", core: core.Load}
	service, err := brokerservice.Start(ctx, node.Options{
		Config: cfg, Certificate: &certificates.certificate, ResetKey: &id.reset, Logger: logger, Version: o.Version,
		Create: first.create,
	})
	if err != nil {
		return nil, errors.Join(portErrorOf(err, o), plane.Shutdown(context.WithoutCancel(ctx)))
	}
	core.Store(service.Core())
	started = true
	return &Server{Service: service, plane: plane, unlock: unlock, cfg: cfg, trust: certificates, id: id, dir: o.Dir}, nil
}

// portErrorOf names the holder of a port that was taken between the check and
// the start.
func portErrorOf(err error, o Options) error {
	for _, used := range []struct {
		network string
		port    int
	}{{UDP, o.Port}, {TCP, o.HTTPPort}, {TCP, o.APIPort}} {
		if used.port == 0 {
			continue
		}
		if taken, ok := errors.AsType[*PortTakenError](portError(procFS(), used.network, at(used.port), err)); ok && taken.Holder != nil {
			return taken
		}
	}
	return err
}

// ErrSettings is wrapped when the settings in the environment or the options
// cannot be used.
var ErrSettings = errors.New("settings")

// settings are a broker's, with what makes it one for development.
func settings(o *Options) (cfg *config.Config, warnings []string, err error) {
	flags := map[string]string{
		"quic-bind":      at(o.Port),
		"quic-listeners": "1",
		"metrics-bind":   at(o.HTTPPort),
		"auto-create":    "true",
	}
	byDefaults := map[string][2]string{
		"FELIX_LOG": {"log", "warn"}, // a person is at the terminal
	}
	if o.Data == "" {
		// Late readers have nothing else to read from.
		byDefaults["FELIX_STREAM_RING_RECORDS"] = [2]string{"stream-ring-records", ringRecords}
	} else {
		byDefaults["FELIX_DURABLE_STORAGE_DIR"] = [2]string{"durable-storage-dir", o.Data}
	}
	for variable, byDefault := range byDefaults {
		isVariable := func(entry string) bool { return strings.HasPrefix(entry, variable+"=") }
		if !slices.ContainsFunc(o.Environ, isVariable) {
			flags[byDefault[0]] = byDefault[1]
		}
	}
	maps.Copy(flags, o.Flags)
	environ := slices.DeleteFunc(slices.Clone(o.Environ), func(entry string) bool {
		return strings.HasPrefix(entry, "FELIX_BROKER_CONFIG=") || strings.HasPrefix(entry, "FELIX_TLS_") ||
			strings.HasPrefix(entry, "FELIX_NODE_") || strings.HasPrefix(entry, "FELIX_CONTROLPLANE_") ||
			o.Data == "" && (strings.HasPrefix(entry, "FELIX_DURABLE_") || strings.HasPrefix(entry, "FELIX_STORAGE_"))
	})
	cfg, warnings, err = config.Load(config.Sources{Flags: flags, Environ: environ, FileSystem: noFiles{}})
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	return cfg, warnings, nil
}

// ringRecords is how many recent records a development stream in memory keeps
// for late readers, if they fit in the broker's bound in bytes.
const ringRecords = "100000"

// noFiles is a file system without files: a development broker has no
// settings file, not even where brokers look for one by default.
type noFiles struct{}

func (noFiles) ReadFile(name string) ([]byte, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// Addr is where clients connect, host:port.
func (s *Server) Addr() string { return s.ClientAddrs()[0] }

// AdminURL is the base of /live, /ready and /metrics.
func (s *Server) AdminURL() string { return "http://" + s.AdminAddr() }

// Process is what the settings say of the process the broker runs in.
func (s *Server) Process() config.Process { return s.cfg.Process }

// DataDir is where the data is, "" in memory.
func (s *Server) DataDir() string { return s.cfg.Storage.Dir }

// Fsync says when a write reaches the disk, "" in memory.
func (s *Server) Fsync() config.FsyncMode {
	if s.DataDir() == "" {
		return ""
	}
	return s.cfg.Storage.Fsync
}

// CAFile is the file of the authority, "" in memory.
func (s *Server) CAFile() string { return s.trust.file }

// TokenFile is the file of the token for the broker, "" in memory.
func (s *Server) TokenFile() string { return inDir(s.dir, tokenFile) }

// ControlPlaneURL is the base of the control plane's API.
func (s *Server) ControlPlaneURL() string { return "http://" + s.plane.Addr() }

// ControlPlaneTokenFile is the file of the token for it, "" in memory.
func (s *Server) ControlPlaneTokenFile() string { return inDir(s.dir, controlTokenFile) }

// Shutdown stops the broker in order, and then its control plane.
func (s *Server) Shutdown(ctx context.Context) error {
	err := errors.Join(s.Service.Shutdown(ctx), s.plane.Shutdown(ctx))
	s.unlock()
	return err
}

// Dial opens a client of the server.
func (s *Server) Dial(ctx context.Context, options ...client.Option) (*client.Client, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.trust.authority) {
		return nil, errors.New("the authority's certificate does not parse")
	}
	host, _, err := net.SplitHostPort(s.Addr())
	if err != nil {
		return nil, err
	}
	all := []client.Option{
		client.WithTenant(Tenant), client.WithNamespace(Namespace), client.WithToken(s.id.token),
		client.WithRootCAs(roots), client.WithServerName(host),
	}
	return client.Dial(ctx, []string{s.Addr()}, append(all, options...)...)
}
