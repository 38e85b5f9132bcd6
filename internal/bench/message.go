package bench

import (
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// messageHead is how many bytes of a payload say which message it is: run,
// sequence, time of sending. A measured message has at least as many.
const messageHead = 24

// A message is the head of a measured payload.
type message struct {
	run      uint64 // tells this run's messages from any others on the stream
	sequence uint64
	sent     time.Duration // on the run's stopwatch
}

func (m message) put(payload []byte) {
	binary.LittleEndian.PutUint64(payload, m.run)
	binary.LittleEndian.PutUint64(payload[8:], m.sequence)
	binary.LittleEndian.PutUint64(payload[16:], uint64(m.sent))
}

// readMessage reads the head of a payload; ok is false for what is no message
// of this run.
func readMessage(payload []byte, run uint64) (m message, ok bool) {
	if len(payload) < messageHead || binary.LittleEndian.Uint64(payload) != run {
		return message{}, false
	}
	return message{
		run:      run,
		sequence: binary.LittleEndian.Uint64(payload[8:]),
		sent:     time.Duration(binary.LittleEndian.Uint64(payload[16:])),
	}, true
}

// noise fills a payload with bytes that do not compress.
func noise(size int) []byte {
	source := rand.NewPCG(rand.Uint64(), rand.Uint64())
	payload := make([]byte, 0, size+8)
	for len(payload) < size {
		payload = binary.LittleEndian.AppendUint64(payload, source.Uint64())
	}
	return payload[:size]
}
