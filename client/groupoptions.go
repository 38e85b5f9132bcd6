package client

import "time"

// A GroupOption configures the handle that [Client.Group] gives.
type GroupOption interface {
	applyGroup(groupOptions) groupOptions
}

type groupOptions struct{ namespace string }

func (n NamespaceOption) applyGroup(o groupOptions) groupOptions {
	o.namespace = string(n)
	return o
}

// A PollOption configures a [Group.Poll].
type PollOption interface {
	applyPoll(pollOptions) pollOptions
}

type pollOptions struct {
	shard      uint32
	max        int
	wait       time.Duration
	visibility time.Duration
	consumer   string
	named      bool
	reclaim    bool
}

type pollOption func(pollOptions) pollOptions

func (f pollOption) applyPoll(o pollOptions) pollOptions { return f(o) }

// PollShard polls a shard of the stream. The default is shard 0, where
// records without a key go.
func PollShard(shard uint32) PollOption {
	return pollOption(func(o pollOptions) pollOptions { o.shard = shard; return o })
}

// PollMax bounds the number of records claimed, 1 to 1,000. The default is
// 32. A broker stops after about 4 MiB of payload besides.
func PollMax(n int) PollOption {
	return pollOption(func(o pollOptions) pollOptions { o.max = n; return o })
}

// PollWait lets the broker wait for a first record up to d, 30 s at most,
// before it answers that there is none. The default is not to wait.
func PollWait(d time.Duration) PollOption {
	return pollOption(func(o pollOptions) pollOptions { o.wait = d; return o })
}

// PollVisibility is how long the claims stand, 12 h at most, before others
// may have the records. The default is the broker's, 30 s unless configured.
func PollVisibility(d time.Duration) PollOption {
	return pollOption(func(o pollOptions) pollOptions { o.visibility = d; return o })
}

// PollAs names the consumer, in 1 to 128 bytes, for [PollReclaim] and for
// those who look at [Group.Describe].
func PollAs(consumer string) PollOption {
	return pollOption(func(o pollOptions) pollOptions { o.consumer, o.named = consumer, true; return o })
}

// PollReclaim gives the records first that this consumer ([PollAs]) claimed
// over earlier connections, without waiting for the claims to lapse: what a
// worker wants that starts again after a crash. Each counts as one more
// delivery. It has an effect once per connection and shard.
func PollReclaim() PollOption {
	return pollOption(func(o pollOptions) pollOptions { o.reclaim = true; return o })
}

// A DescribeOption configures a [Group.Describe].
type DescribeOption interface {
	applyDescribe(describeOptions) describeOptions
}

type describeOptions struct {
	held  bool
	from  uint64
	limit int
}

type describeOption func(describeOptions) describeOptions

func (f describeOption) applyDescribe(o describeOptions) describeOptions { return f(o) }

// DescribeHeld lists up to limit (1 to 1,000) of the records in play from an
// offset on, each with the reason why it is not finished. Brokers that do not
// know the request list none.
func DescribeHeld(from uint64, limit int) DescribeOption {
	return describeOption(func(o describeOptions) describeOptions {
		o.held, o.from, o.limit = true, from, limit
		return o
	})
}
