package segment

import "testing"

func TestHeaderCutAnywhereIsTruncated(t *testing.T) {
	whole := golden(t, "header_chained")
	for n := range whole {
		_, err := ParseHeader(whole[:n])
		c := wantKind(t, err, Truncated)
		if c.Needed != HeaderSize || c.Available != int64(n) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}

func TestHeaderEveryBitCounts(t *testing.T) {
	eachBit(golden(t, "header_chained"), func(bit int, damaged []byte) {
		if h, err := ParseHeader(damaged); err == nil {
			t.Errorf("bit %d inverted is read as %+v", bit, h)
		}
	})
}

func TestHeaderOfAnotherVersionIsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		at   int
		kind CorruptionKind
	}{
		{"magic", 0, SegmentMagic},
		{"version", 5, SegmentVersion},
		{"flags", 7, SegmentFlags},
		{"reserved", 28, SegmentFlags},
		{"last reserved", 59, SegmentFlags},
		{"checksum", 60, SegmentHeaderChecksum},
	} {
		b := golden(t, "header")
		b[c.at] ^= 0x40
		if c.kind != SegmentHeaderChecksum {
			putU32(b[headerSumAt:], checksum(b[:headerSumAt]))
		}
		_, err := ParseHeader(b)
		t.Run(c.name, func(t *testing.T) { wantKind(t, err, c.kind) })
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(golden(f, "header"), false)
	f.Add(golden(f, "header_chained"), true)
	f.Fuzz(func(t *testing.T, b []byte, fix bool) {
		if fix && len(b) >= HeaderSize {
			putU32(b[headerSumAt:], checksum(b[:headerSumAt]))
		}
		if h, err := ParseHeader(b); err == nil {
			wantBytes(t, "written again", h.Append(nil), b[:HeaderSize])
		}
	})
}
