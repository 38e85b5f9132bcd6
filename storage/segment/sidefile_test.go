package segment

import (
	"strings"
	"testing"
)

// sideFiles are the small files, each with a way to parse it and write it
// again, and the place of its checksum.
var sideFiles = []struct {
	vector string
	again  func([]byte) ([]byte, error)
	fix    func([]byte)
}{
	{"mark", func(b []byte) ([]byte, error) {
		m, err := ParseMark(b)
		return m.Append(nil), err
	}, fixAt(markSumAt)},
	{"epochs", func(b []byte) ([]byte, error) {
		g, err := ParseGenerations(b)
		return g.Append(nil), err
	}, func(b []byte) {
		if len(b) >= epochsHeader {
			putU32(b[8:], epochsSum(b))
		}
	}},
	{"replica", func(b []byte) ([]byte, error) {
		r, err := ParseReplica(b)
		return r.Append(nil), err
	}, fixAt(replicaSumAt)},
	{"ballot", func(b []byte) ([]byte, error) {
		l, err := ParseBallot(b)
		return l.Append(nil), err
	}, fixEnd},
	{"identity", func(b []byte) ([]byte, error) {
		id, err := ParseIdentity(b)
		return id.Append(nil), err
	}, fixEnd},
	{"uid", func(b []byte) ([]byte, error) {
		u, err := ParseUID(b)
		return u.Append(nil), err
	}, fixEnd},
}

func fixAt(at int) func([]byte) {
	return func(b []byte) {
		if len(b) >= at+sumSize {
			putU32(b[at:], checksum(b[:at]))
		}
	}
}

func fixEnd(b []byte) {
	if at := len(b) - sumSize; at >= 0 {
		putU32(b[at:], checksum(b[:at]))
	}
}

func TestSideFilesCutLongerOrDamagedAreRefused(t *testing.T) {
	for _, s := range sideFiles {
		t.Run(s.vector, func(t *testing.T) {
			whole := golden(t, s.vector)
			for n := range whole {
				if _, err := s.again(whole[:n]); err == nil {
					t.Errorf("cut at %d goes unseen", n)
				}
			}
			if _, err := s.again(append(whole[:len(whole):len(whole)], 0)); err == nil {
				t.Error("a byte more goes unseen")
			}
			eachBit(whole, func(bit int, damaged []byte) {
				if _, err := s.again(damaged); err == nil {
					t.Errorf("bit %d inverted goes unseen", bit)
				}
			})
		})
	}
}

func TestSideFilesThatNoWriterMakes(t *testing.T) {
	long := strings.Repeat("x", MaxLeader+1)
	for _, c := range []struct {
		name  string
		file  int
		b     []byte
		patch func([]byte)
		kind  CorruptionKind
	}{
		{"mark of version 2", 0, golden(t, "mark"), func(b []byte) { b[5] = 2 }, SideFileVersion},
		{"mark with a flag", 0, golden(t, "mark"), func(b []byte) { b[7] = 1 }, SideFileValue},
		{"mark with a tail", 0, golden(t, "mark"), func(b []byte) { b[31] = 1 }, SideFileValue},
		{"generations out of order", 1, Generations{{4, 0}, {4, 1}}.Append(nil), nil, SideFileValue},
		{"starts out of order", 1, Generations{{4, 5}, {5, 4}}.Append(nil), nil, SideFileValue},
		{"more generations than kept", 1, manyGenerations(MaxGenerations + 1), nil, SideFileLength},
		{"replica with a flag", 2, golden(t, "replica"), func(b []byte) { b[7] = 2 }, SideFileValue},
		{"a leader's long name", 3, Ballot{Leader: long}.Append(nil), nil, SideFileLength},
		{"a leader that is not UTF-8", 3, Ballot{Leader: "\xff"}.Append(nil), nil, SideFileValue},
		{"identity with a flag", 4, golden(t, "identity"), func(b []byte) { b[7] = 1 }, SideFileValue},
		{"a long name", 4, Identity{Name: long}.Append(nil), nil, SideFileLength},
		{"a name that is not UTF-8", 4, Identity{Tenant: "\xff"}.Append(nil), nil, SideFileValue},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.patch != nil {
				c.patch(c.b)
				sideFiles[c.file].fix(c.b)
			}
			_, err := sideFiles[c.file].again(c.b)
			wantKind(t, err, c.kind)
		})
	}
}

// manyGenerations writes a file of n, which Append would not do.
func manyGenerations(n int) []byte {
	b := appendSide(nil, epochsMagic, uint16(n))
	b = appendU32(b, 0)
	for i := range uint64(n) {
		b = appendU64(appendU64(b, i), i)
	}
	putU32(b[8:], epochsSum(b))
	return b
}

func TestSideFilesFitTheirBound(t *testing.T) {
	name := strings.Repeat("x", MaxIdentityName)
	for _, b := range [][]byte{
		manyGenerations(MaxGenerations),
		Ballot{Leader: name}.Append(nil),
		Identity{Space: name, Tenant: name, Namespace: name, Name: name}.Append(nil),
	} {
		if len(b) > MaxSideFile {
			t.Errorf("%d bytes", len(b))
		}
	}
}

func fuzzSideFile(f *testing.F, i int) {
	s := sideFiles[i]
	f.Add(golden(f, s.vector), false)
	f.Add(golden(f, s.vector), true)
	f.Fuzz(func(t *testing.T, b []byte, fix bool) {
		if fix {
			s.fix(b)
		}
		if again, err := s.again(b); err == nil {
			wantBytes(t, "written again", again, b)
		}
	})
}

func FuzzMark(f *testing.F)        { fuzzSideFile(f, 0) }
func FuzzGenerations(f *testing.F) { fuzzSideFile(f, 1) }
func FuzzReplica(f *testing.F)     { fuzzSideFile(f, 2) }
func FuzzBallot(f *testing.F)      { fuzzSideFile(f, 3) }
func FuzzIdentity(f *testing.F)    { fuzzSideFile(f, 4) }
