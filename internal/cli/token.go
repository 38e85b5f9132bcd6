package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/apiclient"
)

func (a *App) tokenCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "token",
		GroupID: groupControl,
		Short:   "Look into tokens",
		Long:    "Look into the tokens that brokers and the control plane are shown.",
		Example: "  felix token inspect\n  felix token inspect --for controlplane",
	}, a.tokenInspectCommand(), a.tokenRenewCommand())
}

// inspectedToken is what "felix token inspect --json" prints.
type inspectedToken struct {
	tokenHead
	tokenBody
	ExpiresAt string `json:"expires_at,omitempty"`
	Expired   bool   `json:"expired"`
}

func (a *App) tokenInspectCommand() *cobra.Command {
	var of string
	cmd := &cobra.Command{
		Use:   "inspect [FILE]",
		Short: "Show what a token says",
		Long: `Show whom a token speaks for, where, until when, and what it allows: the token
in FILE, that of the connection, or with - that on standard input. The token
itself is not printed, and it is not verified: "felix whoami" asks a server.`,
		Example: `  felix token inspect
  felix token inspect --for controlplane
  cat token | felix token inspect - --json | jq .perms`,
		Args:        positional(0, 1),
		Annotations: map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			token, err := a.tokenToInspect(cmd, args, of)
			if err != nil {
				return err
			}
			head, body, err := decodeToken(token)
			if err != nil {
				return &Error{Exit: ExitUsage, Err: err}
			}
			shown := inspectedToken{tokenHead: head, tokenBody: body}
			if at := body.expiry(); !at.IsZero() {
				shown.ExpiresAt, shown.Expired = at.UTC().Format(time.RFC3339), time.Now().After(at)
			}
			return a.facts(shown, shown.facts())
		},
	}
	cmd.Flags().StringVar(&of, "for", "broker", "whose token of the connection: broker or controlplane")
	return cmd
}

func (a *App) tokenToInspect(cmd *cobra.Command, args []string, of string) (string, error) {
	if len(args) > 0 {
		from := a.Stdin
		if args[0] != "-" {
			f, err := os.Open(a.abs(args[0]))
			if err != nil {
				return "", usageError("read the token: %w", err)
			}
			defer f.Close()
			from = f
		}
		data, err := io.ReadAll(io.LimitReader(from, maxTokenBytes))
		return strings.TrimSpace(string(data)), err
	}
	audience, err := word("for", of, map[string]string{"broker": apiclient.AudienceBroker, "controlplane": apiclient.AudienceControlPlane})
	if err != nil {
		return "", err
	}
	by, err := a.resolve(cmd.Flags())
	if err != nil {
		return "", err
	}
	token, err := a.freshToken(cmd.Context(), &by, audience)
	if err == nil && token == "" {
		err = usageError("the connection has no token for the %s", of).hinting("name a file, or choose a context that has one")
	}
	return token, err
}

func (t *inspectedToken) facts() [][2]string {
	expires := "never said"
	if t.ExpiresAt != "" {
		expires = t.ExpiresAt
		switch left := time.Until(t.expiry()); {
		case t.Expired:
			expires += ", expired"
		case left < 1000*24*time.Hour:
			expires += ", in " + elapsed(left)
		}
	}
	facts := [][2]string{
		{"for", fmt.Sprint(t.Audience)}, {"tenant", orDefault(t.Tenant, "-")}, {"subject", t.Subject}, {"issuer", t.Issuer},
		{"expires", expires}, {"key", fmt.Sprintf("%s (%s)", orDefault(t.KeyID, "-"), t.Algorithm)},
	}
	for i, permission := range t.Permissions {
		name := ""
		if i == 0 {
			name = "allows"
		}
		facts = append(facts, [2]string{name, permission})
	}
	return facts
}

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
			if err := a.tellIdentity(&who); err != nil {
				return err
			}
			return nil
		},
	}
}

// inspected is a token of the connection, nil where there is none.
func (a *App) inspected(ctx context.Context, by *resolved, audience string) *inspectedToken {
	token, err := a.freshToken(ctx, by, audience)
	if err != nil || token == "" {
		return nil
	}
	head, body, err := decodeToken(token)
	if err != nil {
		return nil
	}
	shown := inspectedToken{tokenHead: head, tokenBody: body}
	if at := body.expiry(); !at.IsZero() {
		shown.ExpiresAt, shown.Expired = at.UTC().Format(time.RFC3339), time.Now().After(at)
	}
	return &shown
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
	if by.ControlPlaneURL == "" {
		return "not asked: the connection names no control plane"
	}
	api, err := a.openAPI(by, by.ControlPlaneURL)
	if err != nil {
		return err.Error()
	}
	defer api.CloseIdle()
	if by.ControlPlaneToken == "" && by.ControlPlaneTokenFile == "" {
		return "not asked: the connection has no token for it"
	}
	// Whatever the token allows, an answer other than 401 says that it is one.
	if _, err := api.Namespaces(ctx, by.Tenant); apiclient.StatusOf(err) != 0 && apiclient.StatusOf(err) != 403 && apiclient.StatusOf(err) != 404 || apiclient.StatusOf(err) == 0 && err != nil {
		return err.Error()
	}
	return accepted
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

func (a *App) tokenRenewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "renew",
		Short: "Renew the tokens of a login now",
		Long: `Renew the tokens that "felix login" got for the context in use, without waiting
until they are about to expire. Commands do that by themselves in time.

A login that was ended by an administrator is exit code 4.`,
		Example:     "  felix token renew",
		Args:        positional(0, 0),
		Annotations: map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			by, err := a.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			renewed := []string{}
			for audience, file := range map[string]string{apiclient.AudienceBroker: by.TokenFile, apiclient.AudienceControlPlane: by.ControlPlaneTokenFile} {
				if file == "" {
					continue
				}
				if _, err := os.Stat(file + refreshSuffix); err != nil {
					continue
				}
				if _, err := a.renewToken(cmd.Context(), &by, file, audience, true); err != nil {
					if apiclient.StatusOf(err) == 403 {
						return (&Error{Exit: ExitRefused, Err: fmt.Errorf("renew the token: %w", err)}).hinting("the login is over; \"felix login\" begins another")
					}
					return explainControl(cmd.Context(), err)
				}
				renewed = append(renewed, audience)
			}
			if len(renewed) == 0 {
				return usageError("the connection has no tokens of a login").hinting("\"felix login\" gets them")
			}
			slices.Sort(renewed)
			return a.done(map[string][]string{"renewed": renewed}, "renewed: %s", strings.Join(renewed, ", "))
		},
	}
}
