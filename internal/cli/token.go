package cli

import (
	"fmt"
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
itself is not printed, not renewed and not verified: "felix whoami" asks
servers.`,
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
			shown, err := inspectToken(token)
			if err != nil {
				return &Error{Exit: ExitUsage, Err: err}
			}
			return a.facts(shown, shown.facts())
		},
	}
	cmd.Flags().StringVar(&of, "for", "broker", "whose token of the connection: broker or controlplane")
	return cmd
}

func (a *App) tokenToInspect(cmd *cobra.Command, args []string, of string) (string, error) {
	if len(args) > 0 {
		return a.readSecretOrStdin(args[0], "the token")
	}
	audience, err := word("for", of, map[string]string{"broker": apiclient.AudienceBroker, "controlplane": apiclient.AudienceControlPlane})
	if err != nil {
		return "", err
	}
	by, err := a.resolve(cmd.Flags())
	if err != nil {
		return "", err
	}
	token, err := readToken(tokenOf(&by, audience))
	if err == nil && token == "" {
		err = usageError("the connection has no token for the %s", of).hinting("name a file, or choose a context that has one")
	}
	return token, err
}

// inspectToken reads a token and its expiry.
func inspectToken(token string) (*inspectedToken, error) {
	head, body, err := decodeToken(token)
	if err != nil {
		return nil, err
	}
	t := &inspectedToken{tokenHead: head, tokenBody: body}
	if at := body.expiry(); !at.IsZero() {
		t.ExpiresAt, t.Expired = at.UTC().Format(time.RFC3339), time.Now().After(at)
	}
	return t, nil
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
			for _, audience := range []string{apiclient.AudienceBroker, apiclient.AudienceControlPlane} {
				c := tokenOf(&by, audience)
				if c.Token != "" || c.TokenFile == "" || !renewable(c.TokenFile) {
					continue
				}
				if _, err := a.renewToken(cmd.Context(), &by, c.TokenFile, audience, true); err != nil {
					return explainRenewal(cmd.Context(), err)
				}
				renewed = append(renewed, audience)
			}
			if len(renewed) == 0 {
				return usageError("the connection has no tokens of a login").hinting("\"felix login\" gets them")
			}
			return a.done(map[string][]string{"renewed": renewed}, "renewed: %s", strings.Join(renewed, ", "))
		},
	}
}
