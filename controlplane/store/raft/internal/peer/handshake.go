package peer

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The handshake that begins every connection between members. Both sides prove
// that they know the token of the group, over nonces of both, and the token
// itself never travels. Numbers are big-endian.
//
//	caller:   "FLXR" | version u8 = 1 | kind u8 | from u64 | to u64 | nonce [32] | len u8 | cluster id
//	listener: status u8 | nonce [32] | MAC [32] of "listener"
//	caller:   MAC [32] of "caller"
//	listener: status u8
//
// A MAC is HMAC-SHA-256, keyed with the token, over its word, the caller's first
// message and the listener's nonce. A status other than 0 says why the
// connection ends. Without a token the key is empty, and both sides must agree
// on that.
const (
	magic      = "FLXR"
	version    = 1
	nonceSize  = 32
	helloFixed = len(magic) + 1 + 1 + 8 + 8 + nonceSize + 1
)

// MaxClusterID is the longest name of a group, in bytes.
const MaxClusterID = 255

// Kind is what a connection carries.
type Kind uint8

// The kinds of connections.
const (
	Raft Kind = 1 // RPCs of the Raft library
	HTTP Kind = 2 // the routes of control plane 12.6
)

// A Refusal says why a member was not let in. It is a small fixed set, fit for
// a label.
type Refusal string

// The refusals.
const (
	Malformed    Refusal = "malformed"     // no handshake, or of another version
	OtherCluster Refusal = "other_cluster" // another cluster id
	UnknownPeer  Refusal = "unknown_peer"  // an id that is not among the peers, or our own
	WrongMember  Refusal = "wrong_member"  // meant for another member: an address is wrong
	BadToken     Refusal = "bad_token"
	NoTLS        Refusal = "tls"       // no TLS, or a certificate that is not the CA's
	TooMany      Refusal = "too_many"  // connections
	NotReady     Refusal = "not_ready" // the member does not take part yet
)

func (r Refusal) Error() string { return "peer refused: " + string(r) }

// refusals are numbered by their place, from 1, as statuses.
var refusals = []Refusal{Malformed, OtherCluster, UnknownPeer, WrongMember, BadToken, NoTLS, TooMany, NotReady}

func status(err error) byte {
	for i, r := range refusals {
		if errors.Is(err, r) {
			return byte(i + 1)
		}
	}
	return 0
}

func statusError(b byte) error {
	if b == 0 {
		return nil
	}
	if int(b) <= len(refusals) {
		return refusals[b-1]
	}
	return Malformed
}

type hello struct {
	kind     Kind
	from, to uint64
	nonce    [nonceSize]byte
	cluster  string
}

func (h *hello) append(b []byte) []byte {
	b = append(b, magic...)
	b = append(b, version, byte(h.kind))
	b = binary.BigEndian.AppendUint64(b, h.from)
	b = binary.BigEndian.AppendUint64(b, h.to)
	b = append(b, h.nonce[:]...)
	b = append(b, byte(len(h.cluster)))
	return append(b, h.cluster...)
}

// readHello reads the caller's first message, and returns its bytes as well.
func readHello(r io.Reader) (hello, []byte, error) {
	var h hello
	raw := make([]byte, helloFixed, helloFixed+MaxClusterID)
	if _, err := io.ReadFull(r, raw); err != nil {
		return h, nil, err
	}
	if string(raw[:len(magic)]) != magic || raw[4] != version {
		return h, nil, Malformed
	}
	h.kind = Kind(raw[5])
	h.from = binary.BigEndian.Uint64(raw[6:])
	h.to = binary.BigEndian.Uint64(raw[14:])
	copy(h.nonce[:], raw[22:])
	raw = raw[:helloFixed+int(raw[helloFixed-1])]
	if _, err := io.ReadFull(r, raw[helloFixed:]); err != nil {
		return h, nil, err
	}
	h.cluster = string(raw[helloFixed:])
	if h.kind != Raft && h.kind != HTTP {
		return h, nil, Malformed
	}
	return h, raw, nil
}

func (c *Config) mac(word string, hello, nonce []byte) []byte {
	m := hmac.New(sha256.New, []byte(c.Token))
	_, _ = io.WriteString(m, word)
	_, _ = m.Write(hello)
	_, _ = m.Write(nonce)
	return m.Sum(nil)
}

// call is the caller's side.
func (c *Config) call(conn io.ReadWriter, kind Kind, to uint64) error {
	h := hello{kind: kind, from: c.NodeID, to: to, cluster: c.ClusterID}
	if _, err := io.ReadFull(c.Random, h.nonce[:]); err != nil {
		return err
	}
	raw := h.append(nil)
	if _, err := conn.Write(raw); err != nil {
		return err
	}
	var answer [1 + nonceSize + sha256.Size]byte
	if _, err := io.ReadFull(conn, answer[:1]); err != nil {
		return fmt.Errorf("read the answer of the peer: %w", err)
	}
	if err := statusError(answer[0]); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, answer[1:]); err != nil {
		return fmt.Errorf("read the answer of the peer: %w", err)
	}
	nonce, mac := answer[1:1+nonceSize], answer[1+nonceSize:]
	if !hmac.Equal(mac, c.mac("listener", raw, nonce)) {
		return BadToken
	}
	if _, err := conn.Write(c.mac("caller", raw, nonce)); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, answer[:1]); err != nil {
		return fmt.Errorf("read the answer of the peer: %w", err)
	}
	return statusError(answer[0])
}

// answer is the listener's side, up to the last status: the caller is who it
// says, and what is left is whether there is room.
func (c *Config) answer(conn io.ReadWriter) (hello, error) {
	h, raw, err := readHello(conn)
	if err != nil {
		return h, err
	}
	_, known := c.Peers[h.from]
	switch {
	case h.cluster != c.ClusterID:
		return h, OtherCluster
	case h.to != c.NodeID:
		return h, WrongMember
	case !known || h.from == c.NodeID:
		return h, UnknownPeer
	}
	answer := make([]byte, 1+nonceSize, 1+nonceSize+sha256.Size)
	nonce := answer[1:]
	if _, err := io.ReadFull(c.Random, nonce); err != nil {
		return h, err
	}
	if _, err := conn.Write(append(answer, c.mac("listener", raw, nonce)...)); err != nil {
		return h, err
	}
	var mac [sha256.Size]byte
	if _, err := io.ReadFull(conn, mac[:]); err != nil {
		return h, err
	}
	if !hmac.Equal(mac[:], c.mac("caller", raw, nonce)) {
		return h, BadToken
	}
	return h, nil
}
