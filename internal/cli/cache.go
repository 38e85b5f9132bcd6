package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/client"
)

func (a *App) cacheCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "cache",
		GroupID: groupData,
		Short:   "Read, write and watch the keys of a cache",
		Long: `Read, write and watch the keys of a cache: for each key its latest value, with
an optional time to live.`,
		Example: `  felix cache put users u1 '{"name":"Ada"}' --ttl-ms 60000
  felix cache get users u1
  felix cache watch users --retained
  felix cache del users u1`,
	}, a.cacheGetCommand(), a.cachePutCommand(), a.cacheDeleteCommand(),
		a.cacheWatchCommand(), a.cacheListCommand(), a.cacheInfoCommand(),
		a.cacheCreateCommand(), a.cacheSetCommand(), a.cacheRemoveCommand())
}

// cacheEntry is a key of a cache as --json prints it.
type cacheEntry struct {
	Cache       string  `json:"cache"`
	Key         string  `json:"key"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 *string `json:"value_base64,omitempty"`
}

func (a *App) cacheGetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "get CACHE KEY",
		Short: "Print the value of a key",
		Long: `Print the value of KEY. Into a pipe or a file it is exactly the bytes of the
value; on a terminal unprintable bytes are escaped and a newline follows.

A key that is absent, or whose time to live is over, is exit code 5.`,
		Example: `  felix cache get users u1
  felix cache get images cat > cat.png
  felix cache get users u1 --json | jq -r .value`,
		Args:              positional(2, 2),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			value, ok, err := c.Cache(args[0]).Get(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			if !ok {
				return &Error{Exit: ExitNotFound, Err: fmt.Errorf("key %q is not in cache %q", args[1], args[0])}
			}
			if a.flags.json {
				entry := cacheEntry{Cache: args[0], Key: args[1]}
				entry.Value, entry.ValueBase64 = textOrBase64(value)
				return printJSON(a.Stdout, entry)
			}
			out := appendRaw(nil, value, a.StdoutTTY)
			if a.StdoutTTY {
				out = append(out, '\n')
			}
			_, err = a.Stdout.Write(out)
			return err
		},
	}
}

func (a *App) cachePutCommand() *cobra.Command {
	var file string
	var ttlMS uint64
	cmd := &cobra.Command{
		Use:   "put CACHE KEY [VALUE]",
		Short: "Write a key",
		Long: `Write KEY: the bytes of VALUE, or of a file (--file), or of standard input,
each exactly as they are.

With --ttl-ms the key is absent again that many milliseconds later.`,
		Example: `  felix cache put users u1 '{"name":"Ada"}'
  felix cache put images cat --file cat.png
  date | felix cache put clock now --ttl-ms 1000`,
		Args:              positional(2, 3),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			value, err := a.cacheValue(args[2:], file)
			if err != nil {
				return err
			}
			var options []client.PutOption
			if cmd.Flags().Changed("ttl-ms") {
				const most = uint64(1<<63-1) / uint64(time.Millisecond)
				if ttlMS == 0 || ttlMS > most {
					return usageError("--ttl-ms %d: want 1 to %d", ttlMS, most)
				}
				options = append(options, client.WithTTL(time.Duration(ttlMS)*time.Millisecond))
			}
			c, err := a.connect(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.Cache(args[0]).Put(cmd.Context(), args[1], value, options...); err != nil {
				return err
			}
			if a.flags.json {
				return printJSON(a.Stdout, struct {
					Cache string `json:"cache"`
					Key   string `json:"key"`
					Bytes int    `json:"bytes"`
					TTLMS uint64 `json:"ttl_ms,omitempty"`
				}{args[0], args[1], len(value), ttlMS})
			}
			if !a.flags.quiet {
				fmt.Fprintf(a.Stdout, "put %s (%s) in %s\n", args[1], size(uint64(len(value))), args[0])
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "write the bytes of `FILE`, - for standard input")
	cmd.Flags().Uint64Var(&ttlMS, "ttl-ms", 0, "let the key expire after `N` milliseconds (default never)")
	return cmd
}

// cacheValue reads the value to write.
func (a *App) cacheValue(given []string, file string) ([]byte, error) {
	if len(given) == 1 {
		if file != "" {
			return nil, usageError("both VALUE and --file; give one")
		}
		return []byte(given[0]), nil
	}
	in, err := a.openInput(file, "the bytes of the value")
	if err != nil {
		return nil, err
	}
	defer in.close()
	return in.readWhole()
}

func (a *App) cacheDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "del CACHE KEY",
		Short: "Remove a key",
		Long: `Remove KEY and say whether it was there. A key that was absent already is no
error.`,
		Example: `  felix cache del users u1
  felix cache del users u1 --json`,
		Args:              positional(2, 2),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			previous, existed, err := c.Cache(args[0]).Delete(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			if a.flags.json {
				out := struct {
					cacheEntry
					Existed bool `json:"existed"`
				}{cacheEntry{Cache: args[0], Key: args[1]}, existed}
				if existed {
					out.Value, out.ValueBase64 = textOrBase64(previous)
				}
				return printJSON(a.Stdout, out)
			}
			switch {
			case a.flags.quiet:
			case existed:
				fmt.Fprintf(a.Stdout, "removed %s from %s\n", args[1], args[0])
			default:
				fmt.Fprintf(a.Stdout, "%s was not in %s\n", args[1], args[0])
			}
			return nil
		},
	}
}
