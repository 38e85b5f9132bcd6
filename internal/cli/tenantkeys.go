package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/apiclient"
)

func (a *App) tenantKeysCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:   "keys",
		Short: "Rotate the signing keys of the tenant",
		Long: `Rotate the keys that sign the tenant's tokens, without a moment in which a token
is refused: stage a new key, wait until brokers know it (a minute; an hour for
brokers of others), activate it, wait as long as a token lives, and retire the
old one.`,
		Example: `  felix tenant keys stage
  felix tenant keys activate 7d1c...
  felix tenant keys retire 0b9a...`,
	}, a.keysVerb("ls", "List the signing keys", "List the ids of the keys that verify the tenant's tokens, and which one signs.",
		func(ctx context.Context, c *control, _ string) (apiclient.Keys, error) {
			return c.SigningKeys(ctx, c.tenant)
		}),
		a.keysVerb("stage", "Make a key that verifies and does not sign yet", "Make a new key. It is published at once and does not sign until it is activated.",
			func(ctx context.Context, c *control, _ string) (apiclient.Keys, error) {
				return c.StageSigningKey(ctx, c.tenant)
			}),
		a.keysVerb("activate KEY", "Let a key sign", "Let a key sign from now on. The one before goes on verifying.",
			func(ctx context.Context, c *control, kid string) (apiclient.Keys, error) {
				return c.ActivateSigningKey(ctx, c.tenant, kid)
			}),
		a.keysVerb("retire KEY", "Forget a key", "Forget a key. Tokens that it signed are refused from then on. The key that signs\ncannot be retired.",
			func(ctx context.Context, c *control, kid string) (apiclient.Keys, error) {
				return c.RetireSigningKey(ctx, c.tenant, kid)
			}))
}

func (a *App) keysVerb(use, short, long string, do func(ctx context.Context, c *control, kid string) (apiclient.Keys, error)) *cobra.Command {
	args := strings.Count(use, " ")
	example := strings.Replace(use, "KEY", "7d1c52f0aa0e4f1f9d3c6a5b2e8f7a10", 1)
	return a.tenantVerb(&cobra.Command{Use: use, Short: short, Long: long, Example: "  felix tenant keys " + example}, args, args,
		func(ctx context.Context, c *control, args []string) error {
			kid := ""
			if len(args) > 0 {
				kid = args[0]
			}
			keys, err := do(ctx, c, kid)
			if err != nil {
				return err
			}
			if a.flags.json {
				return printJSON(a.Stdout, keys)
			}
			return tell(a, []string{"KEY", "SIGNS"}, keys.Verifying, func(kid string) []string { return []string{kid, yesNo(kid == keys.Current)} })
		})
}
