package controlplane

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

// Options are what an agent is made with.
type Options struct {
	// URL is that of the control plane, or several separated by commas; CAPEM
	// is trusted besides the system's authorities.
	URL   string
	CAPEM []byte
	// Token, TokenFile and RefreshTokenFile are the broker's credential (control
	// plane 18). A broker that stands alone needs one too, to read the feeds.
	Token, TokenFile, RefreshTokenFile string

	// NodeID makes the broker a member of the cluster; empty has it stand alone
	// and serve all shards.
	NodeID        string
	AdvertiseAddr string // ip:port between brokers; required of a member
	ClientAddr    string // ip:port for clients; empty is never offered to them
	Region, Zone  string
	Labels        map[string]string
	MaxShards     uint32 // roles that placement may give it; 0 is no bound
	Weight        uint32 // 0 takes it out of placement
	Features      []string

	// Storage says that the broker has logs; StateDir is where it keeps what it
	// knows, empty for nowhere.
	Storage  bool
	StateDir string

	SyncInterval   time.Duration // of the feeds; 0 means 2 s
	HandoffTimeout time.Duration // for shards to leave at a stop; 0 waits for none
	// SeedTimeout is how long a start waits for the control plane before it
	// serves from what the broker knew; 0 means 5 s.
	SeedTimeout time.Duration
	// LongPoll is how long feeds are asked to hold an answer; 0 means 20 s.
	LongPoll time.Duration

	UserAgent string
	Logger    *slog.Logger
	// Now is the time that counts for keys and the credential; nil is the
	// machine's.
	Now func() time.Time
}

// DefaultSeedTimeout is [Options].SeedTimeout where it is 0.
const DefaultSeedTimeout = 5 * time.Second

func (o *Options) defaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.SeedTimeout <= 0 {
		o.SeedTimeout = DefaultSeedTimeout
	}
	if o.Region == "" {
		o.Region = "local"
	}
}

// validate checks what can be checked before the control plane is asked
// (control plane 6.6).
func (o *Options) validate() error {
	if o.NodeID == "" {
		return nil
	}
	if o.URL == "" {
		return fmt.Errorf("node %q has no control plane URL: set FELIX_CONTROLPLANE_URL, or unset FELIX_NODE_ID for a broker that stands alone", o.NodeID)
	}
	if o.AdvertiseAddr == "" {
		return fmt.Errorf("node %q has no address for other brokers: set FELIX_NODE_ADVERTISE_ADDR to an ip:port", o.NodeID)
	}
	if err := checkNodeID(o.NodeID); err != nil {
		return err
	}
	for _, a := range []struct{ name, addr string }{{"FELIX_NODE_ADVERTISE_ADDR", o.AdvertiseAddr}, {"FELIX_NODE_CLIENT_ADDR", o.ClientAddr}} {
		if a.addr == "" {
			continue
		}
		if addr, err := netip.ParseAddrPort(a.addr); err != nil || addr.Port() == 0 {
			return fmt.Errorf("%s is %q: give an ip:port, as in 10.0.0.4:5000", a.name, a.addr)
		}
	}
	return nil
}

var errNodeID = errors.New("a node id is 1 to 253 of a-z, 0-9, '-', '.' and '_'")

func checkNodeID(id string) error {
	if len(id) < 1 || len(id) > 253 {
		return errNodeID
	}
	for _, r := range id {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_' {
			return fmt.Errorf("node id %q: %w", id, errNodeID)
		}
	}
	return nil
}

func (o *Options) registration() apiclient.Registration {
	capacity := &model.Capacity{Weight: o.Weight}
	if o.MaxShards > 0 {
		capacity.MaxShards = &o.MaxShards
	}
	return apiclient.Registration{
		NodeID: o.NodeID, AdvertiseAddr: o.AdvertiseAddr, ClientAddr: o.ClientAddr, Region: o.Region, Zone: o.Zone,
		Labels: o.Labels, Capacity: capacity, Features: o.Features,
	}
}
