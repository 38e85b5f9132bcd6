package segment

import "unicode/utf8"

const (
	ballotMagic = 0x464C584C // "FLXL"
	ballotFixed = 16
	sumSize     = 4
	// MaxLeader bounds a leader's name, in bytes.
	MaxLeader = 1024
)

// Ballot is the file ballot: which leader was accepted for a generation. It is
// on disk before [Replica] says that generation, and a file that is there and
// does not decode fails the opening of the log.
type Ballot struct {
	Generation uint64
	Leader     string // at most MaxLeader bytes of UTF-8
}

// Append appends the file.
func (b Ballot) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendSide(dst, ballotMagic, uint16(len(b.Leader)))
	dst = appendU64(dst, b.Generation)
	dst = append(dst, b.Leader...)
	return appendU32(dst, checksum(dst[start:]))
}

// ParseBallot reads the file.
func ParseBallot(b []byte) (Ballot, error) {
	n, err := openSide(b, ballotMagic, ballotFixed+sumSize)
	if err != nil {
		return Ballot{}, err
	}
	if n > MaxLeader {
		return Ballot{}, corrupt(SideFileLength, 6, "a leader's name of %d bytes", n)
	}
	end := ballotFixed + int(n)
	if err := closeSide(b, end, end+sumSize); err != nil {
		return Ballot{}, err
	}
	leader := string(b[ballotFixed:end])
	if !utf8.ValidString(leader) {
		return Ballot{}, corrupt(SideFileValue, ballotFixed, "the leader's name is not UTF-8")
	}
	return Ballot{Generation: getU64(b[8:]), Leader: leader}, nil
}
