package segment

const (
	replicaMagic  = 0x464C5852 // "FLXR"
	replicaSumAt  = 24
	replicaSize   = 28
	flagHoldTrims = 1
)

// Replica is the file replica: what this copy of the log has promised. A file
// that is there and does not decode fails the opening of the log.
type Replica struct {
	HoldRetention bool   // retention stops at CommitOffset
	Generation    uint64 // the newest accepted; records of older ones are refused
	CommitOffset  uint64 // records below are on a majority
}

// Append appends the file.
func (r Replica) Append(dst []byte) []byte {
	start := len(dst)
	var flags uint16
	if r.HoldRetention {
		flags = flagHoldTrims
	}
	dst = appendSide(dst, replicaMagic, flags)
	dst = appendU64(dst, r.Generation)
	dst = appendU64(dst, r.CommitOffset)
	return appendU32(dst, checksum(dst[start:]))
}

// ParseReplica reads the file.
func ParseReplica(b []byte) (Replica, error) {
	flags, err := openSide(b, replicaMagic, replicaSize)
	if err == nil {
		err = closeSide(b, replicaSumAt, replicaSize)
	}
	if err == nil && flags&^flagHoldTrims != 0 {
		err = corrupt(SideFileValue, 6, "flags %04x", flags)
	}
	if err != nil {
		return Replica{}, err
	}
	return Replica{
		HoldRetention: flags&flagHoldTrims != 0,
		Generation:    getU64(b[8:]),
		CommitOffset:  getU64(b[16:]),
	}, nil
}
