package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/client"
)

// maxMessageBytes is the largest message "felix pub" sends: a frame's 16 MiB
// less room for names and the longest key.
const maxMessageBytes = 16<<20 - 128<<10

// How many messages and bytes go into one batch of a bulk publish. A batch
// goes out sooner when the input has nothing more at hand.
const (
	batchMessages = 64
	batchBytes    = 64 << 10
)

type pubFlags struct {
	file       string
	whole      bool
	key        string
	count      uint64
	ack        string
	idempotent bool
}

func (a *App) pubCommand() *cobra.Command {
	f := pubFlags{}
	cmd := &cobra.Command{
		Use:     "pub STREAM [DATA]",
		GroupID: groupData,
		Short:   "Publish messages to a stream",
		Long: `Publish to STREAM: one message with the bytes of DATA; or each line of a file
(--file) or of standard input as a message; or, with --whole, the file or the
input as one message.

A newline ends a message and is no part of it; nothing else is changed, and an
empty line is an empty message. "felix sub", which ends every message with a
newline, gives back a file of lines byte for byte. (A last line without a
newline gains one on the way.)

Bulk publishing keeps many batches under way at once, in the order of the
lines. Lines that arrive slowly on standard input are sent as they come.

With --idempotent each message is stored exactly once: when a connection or the
broker is lost on the way, what was not acknowledged is sent again, for up to
a minute, and the broker leaves out what it has already. Without it a message
whose acknowledgement was lost is reported, and not sent again.

At the end it says how many messages went out, and at which offsets. An
acknowledgement carries an offset once the record is in a log; a stream held
in memory has no log, so its acknowledgements carry none.`,
		Example: `  # one message
  felix pub orders '{"id":1}'

  # one message a line, from a file and from another program
  felix pub quakes --file quakes.ndjson
  tail -f access.log | felix pub access

  # a file, each line once, whatever happens to the connection
  felix pub quakes --file quakes.ndjson --idempotent

  # a whole file as one message, routed by key
  felix pub images --whole --file cat.png --key cat

  # the same message a thousand times, unacknowledged
  felix pub load tick --count 1000 --ack none`,
		Args:              positional(1, 2),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			source, closeSource, err := a.pubSource(&f, args[1:])
			if err != nil {
				return err
			}
			defer closeSource()
			keyed := cmd.Flags().Changed("key")
			options, err := f.options(keyed)
			if err != nil {
				return err
			}
			c, err := a.connect(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			awaitStream(cmd.Context(), c, args[0])
			var publisher batchSender = c.Publisher(args[0], options...)
			if f.idempotent {
				if publisher, err = newIdempotentSender(cmd.Context(), c, args[0], []byte(f.key), keyed); err != nil {
					return err
				}
			}
			return a.publish(cmd.Context(), publisher, source, args[0], f.ack == "message")
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "publish the lines of `FILE`, - for standard input")
	flags.BoolVar(&f.whole, "whole", false, "publish the file or input as one message")
	flags.StringVarP(&f.key, "key", "k", "", "routing `KEY`: equal keys go to one shard and keep their order")
	flags.Uint64Var(&f.count, "count", 1, "publish each message `N` times")
	flags.StringVar(&f.ack, "ack", "message", "`MODE` of acknowledgement: message waits for the broker's answer; none does not, and an overloaded broker may drop what it got")
	flags.BoolVar(&f.idempotent, "idempotent", false, "store each message exactly once: send again what may be lost, under its number")
	mustComplete(cmd, "ack", "message", "none")
	return cmd
}

// options turns the flags into those of the client.
func (f *pubFlags) options(keyed bool) ([]client.PublishOption, error) {
	var options []client.PublishOption
	switch f.ack {
	case "message":
		options = append(options, client.WithAck(client.AckPerBatch))
	case "none":
		options = append(options, client.WithAck(client.AckNone))
	default:
		return nil, usageError("--ack %q: want message or none", f.ack)
	}
	if keyed {
		options = append(options, client.WithKey([]byte(f.key)))
	}
	if f.idempotent && f.ack != "message" {
		return nil, usageError("--idempotent needs acknowledgements: --ack %s contradicts it", f.ack)
	}
	if f.count == 0 {
		return nil, usageError("--count 0: want at least 1")
	}
	return options, nil
}

// A pubResult is what "felix pub" did.
type pubResult struct {
	Stream    string `json:"stream"`
	Published uint64 `json:"published"`
	Bytes     uint64 `json:"bytes"`
	// Acked counts the messages that the broker answered for.
	Acked uint64 `json:"acked"`
	// FirstOffset and LastOffset are of the messages whose answer had one.
	FirstOffset *uint64 `json:"first_offset,omitempty"`
	LastOffset  *uint64 `json:"last_offset,omitempty"`
	// WithoutOffset counts messages answered without an offset, Why says why.
	WithoutOffset uint64  `json:"without_offset"`
	Why           string  `json:"without_offset_reason,omitempty"`
	Seconds       float64 `json:"seconds"`
}

// whyNoOffset explains an acknowledgement without an offset.
const whyNoOffset = "the stream is in memory, and only a log has offsets"

// A pubTally gathers the answers of one bulk publish.
type pubTally struct {
	mu     sync.Mutex
	result pubResult
	err    error
}

// answer takes the answer to a batch of n messages. It is called from the
// client's reader.
func (t *pubTally) answer(n uint64, ack client.Ack, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		if t.err == nil {
			t.err = err
		}
		return
	}
	t.result.Acked += n
	if !ack.HasOffset {
		t.result.WithoutOffset += n
		return
	}
	first, last := ack.Offset, ack.Offset+n-1
	if t.result.FirstOffset == nil {
		t.result.FirstOffset, t.result.LastOffset = &first, &last
		return
	}
	*t.result.FirstOffset = min(*t.result.FirstOffset, first)
	*t.result.LastOffset = max(*t.result.LastOffset, last)
}

// sent counts n messages that were handed over.
func (t *pubTally) sent(n, bytes uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.result.Published += n
	t.result.Bytes += bytes
}

func (t *pubTally) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// A pubBatch is messages that go out together.
type pubBatch struct {
	payloads [][]byte
	bytes    int // of the payloads
}

// readBatches cuts what source yields into batches, in a goroutine of its
// own, since a read of standard input cannot be interrupted. The batches end
// with the source, with a failure to read it (the error is there when the
// channel is closed), or with ctx.
func readBatches(ctx context.Context, source pubSource) (batches <-chan pubBatch, failure func() error) {
	out := make(chan pubBatch)
	var failed error
	go func() {
		defer close(out)
		var batch pubBatch
		for {
			payload, err := source.next()
			if err == nil {
				batch.payloads, batch.bytes = append(batch.payloads, payload), batch.bytes+len(payload)
				if len(batch.payloads) < batchMessages && batch.bytes < batchBytes && source.ready() {
					continue
				}
			}
			if len(batch.payloads) > 0 {
				select {
				case out <- batch:
				case <-ctx.Done():
					failed = context.Cause(ctx)
					return
				}
				batch = pubBatch{}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					failed = err
				}
				return
			}
		}
	}()
	return out, func() error { return failed }
}

// lastWords is how long an interrupted publish waits for the answers to what
// it has sent.
const lastWords = 2 * time.Second

// publish sends everything source yields, many batches under way at once, and
// says how it went.
func (a *App) publish(ctx context.Context, publisher batchSender, source pubSource, stream string, acked bool) error {
	tally := &pubTally{result: pubResult{Stream: stream}}
	messages, inputBytes := source.size()
	total, noun := messages, "message"
	if messages == 0 && inputBytes > 0 {
		total, noun = inputBytes, "byte"
	}
	bar := a.startProgress("publishing", total, noun)
	defer bar.finish()
	started := time.Now()
	send := func(batch pubBatch) error {
		n := uint64(len(batch.payloads))
		err := publisher.SendFunc(ctx, func(ack client.Ack, err error) {
			if acked {
				tally.answer(n, ack, err)
			}
		}, batch.payloads...)
		if err != nil {
			return err
		}
		tally.sent(n, uint64(batch.bytes))
		if noun == "byte" {
			bar.add(uint64(batch.bytes) + n) // with their newlines
		} else {
			bar.add(n)
		}
		return tally.failure()
	}
	err := func() error {
		batches, failure := readBatches(ctx, source)
		for {
			select {
			case batch, more := <-batches:
				if !more {
					return failure()
				}
				if err := send(batch); err != nil {
					return err
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}()
	flush := ctx
	if ctx.Err() != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
		defer cancel()
		flush = late
	}
	if flushErr := publisher.Flush(flush); err == nil {
		err = flushErr
	}
	if refused := tally.failure(); refused != nil {
		err = refused
	}
	took := time.Since(started)
	bar.finish()
	return a.tellPublished(tally, took, acked, err)
}

// tellPublished prints the result, or says how far the publish came before it
// failed.
func (a *App) tellPublished(t *pubTally, took time.Duration, acked bool, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &t.result
	if err != nil {
		if r.Published <= 1 && r.Acked == 0 {
			return err
		}
		out := &Error{Err: err}
		if acked {
			return out.hinting("%s sent before that, %s acknowledged", plural(r.Published, "message"), count(r.Acked))
		}
		return out.hinting("%s sent before that", plural(r.Published, "message"))
	}
	r.Seconds = took.Seconds()
	if r.WithoutOffset > 0 {
		r.Why = whyNoOffset
	}
	if a.flags.json {
		return printJSON(a.Stdout, r)
	}
	if a.flags.quiet {
		return nil
	}
	var line bytes.Buffer
	fmt.Fprintf(&line, "published %s (%s) to %s", plural(r.Published, "message"), size(r.Bytes), r.Stream)
	if r.Published > 1 {
		fmt.Fprintf(&line, " in %s, %s", elapsed(took), rate(perSecond(r.Published, took), "message"))
	}
	switch {
	case r.FirstOffset == nil:
	case *r.FirstOffset == *r.LastOffset:
		fmt.Fprintf(&line, ", at offset %d", *r.FirstOffset)
	default:
		fmt.Fprintf(&line, ", at offsets %d to %d", *r.FirstOffset, *r.LastOffset)
	}
	fmt.Fprintln(&line)
	switch {
	case !acked:
		fmt.Fprintln(&line, "no acknowledgement was asked for: an overloaded broker may have dropped some")
	case r.WithoutOffset > 0:
		fmt.Fprintf(&line, "%s acknowledged without an offset: %s\n", plural(r.WithoutOffset, "message"), r.Why)
	}
	_, err = line.WriteTo(a.Stdout)
	return err
}

// mustComplete offers fixed values for a flag that the caller just defined.
func mustComplete(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, choices(values...)); err != nil {
		panic("felix: " + err.Error())
	}
}
