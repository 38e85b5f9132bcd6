package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/client"
)

type watchFlags struct {
	key      string
	prefix   string
	retained bool
	from     uint64
	count    uint64
}

func (a *App) cacheWatchCommand() *cobra.Command {
	f := watchFlags{}
	cmd := &cobra.Command{
		Use:   "watch CACHE",
		Short: "Print the changes of a cache",
		Long: `Watch CACHE and print each change: the key, a tab, and the new value, or
(deleted) or (expired). It ends after --count changes or with Ctrl-C; either
way the exit code is 0.

Every key is watched unless --key or --prefix says which. With --retained the
values that the cache holds come first; a line on standard error says when
they are all there. --from takes up the changes of one key at an offset: that
of the first change not seen yet.

A lost connection is taken up behind the last change. Where the broker no
longer holds the changes missed, a line on standard error says so, and the
current values come instead: a key that does not come is gone.

With --json each change is an object on a line, with "kind" (put, deleted,
expired) and "payload", or "payload_base64" where the value is not UTF-8. The
remarks above are then objects too, of the kinds "synced" and "reset".

It needs a broker with storage: changes are read from a log.`,
		Example: `  # follow a cache, Ctrl-C ends
  felix cache watch users

  # what it holds under a prefix, then every change to that
  felix cache watch sessions --prefix eu/ --retained

  # the next change of one key, as an object
  felix cache watch users --key u1 --count 1 --json | jq -r .payload`,
		Args:              positional(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := f.options(cmd)
			if err != nil {
				return err
			}
			c, err := a.connect(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			w, err := c.Cache(args[0]).Watch(cmd.Context(), options...)
			if err != nil {
				return err
			}
			defer w.Close()
			a.remark("watching %s", args[0])
			return a.followChanges(cmd.Context(), w, args[0], f.count)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.key, "key", "k", "", "watch `KEY` alone")
	flags.StringVar(&f.prefix, "prefix", "", "watch the keys that begin with `PREFIX` (default all)")
	flags.BoolVar(&f.retained, "retained", false, "begin with the values the cache holds")
	flags.Uint64Var(&f.from, "from", 0, "begin with the change at `OFFSET`, or the first behind it; with --key")
	flags.Uint64Var(&f.count, "count", 0, "end after `N` changes (default never)")
	return cmd
}

// options checks the flags and turns them into those of the client.
func (f *watchFlags) options(cmd *cobra.Command) ([]client.WatchOption, error) {
	given := func(flag string) bool { return cmd.Flags().Changed(flag) }
	var options []client.WatchOption
	switch {
	case given("key") && given("prefix"):
		return nil, usageError("both --key and --prefix; give one")
	case given("from") && f.retained:
		return nil, usageError("--retained begins with the values held and --from with a change; give one")
	case given("from") && !given("key"):
		return nil, usageError("--from needs --key: each shard of a cache has offsets of its own")
	case given("count") && f.count == 0:
		return nil, usageError("--count 0: want at least 1")
	case given("key"):
		options = append(options, client.WatchKey(f.key))
	case given("prefix"):
		options = append(options, client.WatchPrefix(f.prefix))
	}
	if f.retained {
		options = append(options, client.Retained())
	}
	if given("from") {
		options = append(options, client.WatchFrom(f.from))
	}
	return options, nil
}

// followChanges prints the changes of a watch until there were enough, or
// ctx ends.
func (a *App) followChanges(ctx context.Context, w *client.Watch, cache string, enough uint64) error {
	out := bufio.NewWriterSize(a.Stdout, 64<<10)
	printer := changePrinter{cache: cache, json: a.flags.json, tty: a.StdoutTTY}
	var printed, held uint64
	for {
		change, err := w.Next(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil // the user's wish
		case errors.Is(err, client.ErrEnded):
			return &Error{Err: fmt.Errorf("the broker ended the watch after %s", plural(printed, "change"))}
		default:
			return err
		}
		mark := false
		switch change.Kind {
		case client.Synced:
			mark = true
			a.remark("%s held; changes follow", plural(held, "key"))
		case client.Reset:
			mark = true
			held = 0
			a.remark("changes of shard %d were missed and are no longer held; its current values follow", change.Shard)
		default:
			if change.Retained {
				held++
			}
		}
		if !mark || a.flags.json {
			if _, err := out.Write(printer.line(&change)); err != nil {
				return err
			}
		}
		if !mark {
			printed++
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if printed == enough && enough > 0 {
			return nil
		}
	}
}

// changeJSON is a change as --json prints it.
type changeJSON struct {
	Kind   string  `json:"kind"`
	Cache  string  `json:"cache"`
	Key    *string `json:"key,omitempty"`
	Shard  *uint32 `json:"shard,omitempty"`
	Offset *uint64 `json:"offset,omitempty"`
	*payloadJSON
	ExpiresAtMS int64 `json:"expires_at_ms,omitempty"`
	// Retained says that the value was there before the watch.
	Retained bool `json:"retained,omitempty"`
}

// A changePrinter makes lines of changes.
type changePrinter struct {
	cache   string
	json    bool
	tty     bool
	scratch []byte
}

// line is a change as a line of output, valid until the next call.
func (p *changePrinter) line(change *client.Change) []byte {
	dst := p.scratch[:0]
	if p.json {
		dst = appendJSON(dst, p.shown(change))
	} else {
		dst = appendRaw(dst, []byte(change.Key), p.tty)
		dst = append(dst, '\t')
		switch change.Kind {
		case client.Put:
			dst = appendRaw(dst, change.Value, p.tty)
		default:
			dst = fmt.Appendf(dst, "(%s)", change.Kind)
		}
	}
	p.scratch = append(dst, '\n')
	return p.scratch
}

func (p *changePrinter) shown(change *client.Change) changeJSON {
	shown := changeJSON{Kind: change.Kind.String(), Cache: p.cache, Retained: change.Retained, ExpiresAtMS: unixMilli(change.ExpiresAt)}
	if change.Kind != client.Synced {
		shown.Shard = &change.Shard
	}
	if change.Kind == client.Synced || change.Kind == client.Reset {
		return shown
	}
	shown.Key, shown.Offset = &change.Key, &change.Offset
	if change.Kind == client.Put {
		payload := newPayloadJSON(change.Value)
		shown.payloadJSON = &payload
	}
	return shown
}

// unixMilli is t in Unix milliseconds, 0 for no time.
func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
