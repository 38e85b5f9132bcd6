// Package quic carries Felix over QUIC v1 (wire 2), on quic-go.
//
// A [Listener] and a [Dialer] each own one UDP socket of transport/udp; all
// connections of a dialer share its socket. Connections and streams appear as
// the interfaces of package transport, and so do errors: no quic-go type
// leaves this package.
//
// # What to know about the carrier
//
//   - A stream reaches the peer with its first bytes: write the hello at once.
//   - A stream counts against the peer's limit until both its halves have
//     ended: read to the end or CancelRead, and CloseWrite or CancelWrite.
//     A half the peer reset or stopped ends here only when it is read from,
//     written to, or cancelled.
//   - Write of more than a packet returns when the last packet's worth is all
//     that is left to send; so it waits for flow and congestion control.
//   - Close drops what was written and not yet acknowledged. Whoever wants it
//     delivered has the peer say so first.
package quic
