package cli

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/apiclient"
)

// identity is what "felix whoami --json" prints.
type identity struct {
	Context      string          `json:"context,omitempty"`
	Tenant       string          `json:"tenant"`
	Namespace    string          `json:"namespace"`
	Brokers      *inspectedToken `json:"broker_token,omitempty"`
	Control      *inspectedToken `json:"controlplane_token,omitempty"`
	BrokersOK    string          `json:"brokers"`
	ControlOK    string          `json:"controlplane"`
	ControlPlane string          `json:"controlplane_url,omitempty"`
}

func (a *App) whoamiCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "whoami",
		GroupID: groupControl,
		Short:   "Show who you are, and whether servers agree",
		Long: `Show the context, the tenant and what the tokens of the connection say, and ask
a broker and the control plane whether they accept them.`,
		Example:     "  felix whoami\n  felix whoami --json | jq .broker_token.perms",
		Args:        positional(0, 0),
		Annotations: map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			by, err := a.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			who := identity{Context: by.ContextName, Tenant: by.Tenant, Namespace: orDefault(by.Namespace, defaultNamespace), ControlPlane: by.ControlPlaneURL}
			who.Brokers = a.inspected(cmd.Context(), &by, apiclient.AudienceBroker)
			who.Control = a.inspected(cmd.Context(), &by, apiclient.AudienceControlPlane)
			who.BrokersOK = a.acceptedByBroker(cmd.Context(), &by)
			who.ControlOK = a.acceptedByControlPlane(cmd.Context(), &by)
			return a.tellIdentity(&who)
		},
	}
}

// inspected is a token of the connection, nil where there is none.
func (a *App) inspected(ctx context.Context, by *resolved, audience string) *inspectedToken {
	token, err := a.freshToken(ctx, by, audience)
	if err != nil || token == "" {
		return nil // whoever is asked next says so
	}
	shown, err := inspectToken(token)
	if err != nil {
		return nil // it is of another kind, which only a server can judge
	}
	return shown
}

// accepted is what a server says of a token it accepts.
const accepted = "accepted"

func (a *App) acceptedByBroker(ctx context.Context, by *resolved) string {
	if len(by.Brokers) == 0 {
		return "not asked: the connection names no broker"
	}
	c, err := a.dial(ctx, by)
	if err != nil {
		return err.Error()
	}
	c.Close()
	return accepted
}

func (a *App) acceptedByControlPlane(ctx context.Context, by *resolved) string {
	switch {
	case by.ControlPlaneURL == "":
		return "not asked: the connection names no control plane"
	case by.ControlPlaneToken == "" && by.ControlPlaneTokenFile == "":
		return "not asked: the connection has no token for it"
	case by.Tenant == "":
		return "not asked: the connection names no tenant"
	}
	api, err := a.openAPI(by, by.ControlPlaneURL)
	if err != nil {
		return err.Error()
	}
	defer api.CloseIdle()
	_, err = api.Namespaces(ctx, by.Tenant)
	if status := apiclient.StatusOf(err); err != nil && status != http.StatusForbidden && status != http.StatusNotFound {
		return err.Error()
	}
	return accepted // what it allows is another question
}

func (a *App) tellIdentity(who *identity) error {
	if a.flags.json {
		return printJSON(a.Stdout, who)
	}
	facts := [][2]string{{"context", orDefault(who.Context, "-")}, {"tenant", orDefault(who.Tenant, "-")}, {"namespace", who.Namespace}}
	for _, side := range []struct {
		name, verdict string
		token         *inspectedToken
	}{{"brokers", who.BrokersOK, who.Brokers}, {"control plane", who.ControlOK, who.Control}} {
		facts = append(facts, [2]string{side.name, side.verdict})
		if side.token == nil {
			continue
		}
		for _, fact := range side.token.facts() {
			if fact[0] == "subject" || fact[0] == "expires" || fact[0] == "allows" || fact[0] == "" {
				facts = append(facts, [2]string{"  " + fact[0], fact[1]})
			}
		}
	}
	return a.facts(who, facts)
}
