package wire_test

import (
	"bytes"
	"fmt"

	"github.com/felixlog/felix/wire"
)

// A stream with one message and one publish batch on it, and how it is read.
func Example() {
	request := uint64(7)
	stream := wire.AppendMessage(nil, &wire.CacheGet{
		Tenant: "t1", Namespace: "default", Cache: "primary", Key: []byte("k"), RequestID: wire.Some(request),
	})
	publish := wire.Publish{
		Acked: true, RequestID: 8, AckMode: wire.AckPerBatch,
		Tenant: []byte("t1"), Namespace: []byte("default"), Stream: []byte("demo"),
		Block: wire.AppendBlock(nil, []byte("hello"), []byte("world")),
	}
	stream = publish.Append(stream)

	frames := wire.NewFrameReader(bytes.NewReader(stream), wire.MaxFramePayload)
	var messages wire.Decoder
	for {
		header, payload, err := frames.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		switch header.Flags.Kind() {
		case wire.FrameJSON:
			m, err := messages.Decode(payload)
			fmt.Println(m.MessageType(), err)
		case wire.FramePublish:
			var p wire.Publish
			err := wire.ParsePublish(header.Flags, payload, &p)
			fmt.Println("publish", p.RequestID, p.Block.Count(), p.Block.PayloadBytes(), err)
		}
	}
	// Output:
	// cache_get <nil>
	// publish 8 2 10 <nil>
	// EOF
}
