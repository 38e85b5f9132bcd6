package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

type streamFlags struct {
	kind, routing, region string
	shards, copies        uint32
	streamSettings
}

func (a *App) streamCreateCommand() *cobra.Command {
	f := streamFlags{}
	cmd := a.tenantVerb(&cobra.Command{
		Use:   "create STREAM",
		Short: "Make a stream",
		Long: `Make a stream in the namespace. Made again with the same settings it is left as
it is; with other settings that is an error, exit code 4.

Brokers serve it as soon as they have heard of it, which takes a moment.`,
		Example: `  felix stream create orders --shards 4 --retention-secs 3600
  felix stream create metrics --durable false`,
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		spec, err := f.spec(args[0])
		if err != nil {
			return err
		}
		s, err := c.CreateStream(ctx, c.namespaceKey(), spec)
		if apiclient.StatusOf(err) == http.StatusConflict {
			return a.madeBefore(ctx, c, &spec, err)
		}
		if err != nil {
			return err
		}
		return a.done(s, "made stream %s with %s", s.Stream, plural(uint64(s.Shards), "shard"))
	})
	flags := cmd.Flags()
	flags.Uint32Var(&f.shards, "shards", 1, "`N` shards, fixed from now on")
	flags.Uint32Var(&f.copies, "replication", 1, "`N` copies of each shard, fixed from now on")
	flags.StringVar(&f.kind, "kind", "stream", "what it is for: stream or queue")
	addStreamSettings(cmd, &f.streamSettings)
	flags.StringVar(&f.region, "region", "", "`REGION` that the shards stay in (default any)")
	flags.StringVar(&f.routing, "routing", "modulo", "how keys find their shard: modulo or jump-hash")
	return cmd
}

// madeBefore is for a stream that is there already: it is fine if it has the
// settings that were asked for.
func (a *App) madeBefore(ctx context.Context, c *control, spec *apiclient.StreamSpec, conflict error) error {
	there, err := c.Stream(ctx, c.stream(spec.Stream))
	if err != nil {
		return errors.Join(conflict, err)
	}
	asked := there
	asked.Kind, asked.Shards, asked.ReplicationFactor, asked.Region, asked.Routing = spec.Kind, spec.Shards, max(spec.ReplicationFactor, 1), spec.Region, spec.Routing
	asked.Durable, asked.Retention, asked.Consistency, asked.Delivery = spec.Durable, spec.Retention, spec.Consistency, spec.Delivery
	differ := differences(streamFacts(&there), streamFacts(&asked), "%s is %s, not %s")
	if len(differ) > 0 {
		return (&Error{Exit: ExitRefused, Err: fmt.Errorf("stream %s is there with other settings: %s", there.Stream, strings.Join(differ, "; "))}).
			hinting("\"felix stream set\" changes what can be changed; the rest is fixed")
	}
	return a.done(there, "stream %s is there already, with these settings", there.Stream)
}

// differences are what two lists of the same facts do not agree on, each in the
// words of format: name, the one, the other.
func differences(one, other [][2]string, format string) []string {
	var differ []string
	for i := range one {
		if one[i] != other[i] {
			differ = append(differ, fmt.Sprintf(format, one[i][0], one[i][1], other[i][1]))
		}
	}
	return differ
}

// spec is the stream that the flags describe.
func (f *streamFlags) spec(name string) (apiclient.StreamSpec, error) {
	spec := apiclient.StreamSpec{Stream: name, Shards: f.shards, ReplicationFactor: f.copies, Region: f.region}
	var errs [2]error
	spec.Kind, errs[0] = word("kind", f.kind, map[string]model.StreamKind{"stream": model.KindStream, "queue": model.KindQueue})
	spec.Routing, errs[1] = word("routing", f.routing, map[string]model.Routing{"modulo": model.Modulo, "jump-hash": model.JumpHash})
	return spec, errors.Join(append(errs[:], f.fill(&spec))...)
}

// word is what a word of the command line stands for.
func word[T any](flag, text string, words map[string]T) (T, error) {
	value, known := words[text]
	if !known {
		return value, usageError("--%s %q: want %s", flag, text, strings.Join(slices.Sorted(maps.Keys(words)), " or "))
	}
	return value, nil
}

func consistency(text string) (model.Consistency, error) {
	return word("consistency", text, map[string]model.Consistency{"leader": model.Leader, "quorum": model.Quorum})
}

func delivery(text string) (model.Delivery, error) {
	return word("delivery", text, map[string]model.Delivery{"at-least-once": model.AtLeastOnce, "at-most-once": model.AtMostOnce})
}

// bound is a number above zero, or nil for "default".
func bound(flag, text string) (*uint64, error) {
	if text == "default" {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 {
		return nil, usageError("--%s %q: want a whole number above 0, or default", flag, text)
	}
	return &n, nil
}
