package segment

import "unicode/utf8"

const (
	uidMagic = 0x464C5855 // "FLXU"
	uidFixed = 8 + nameSize
	// MaxUID bounds a uid, in bytes.
	MaxUID = 255
)

// UID is the file uid: to which creation of its stream or cache the log belongs.
// A name that was deleted and created again has another (control plane 4.4).
type UID string

// Append appends the file.
func (u UID) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendSide(dst, uidMagic, 0)
	dst = appendU16(dst, uint16(len(u)))
	dst = append(dst, u...)
	return appendU32(dst, checksum(dst[start:]))
}

// ParseUID reads the file.
func ParseUID(b []byte) (UID, error) {
	own, err := openSide(b, uidMagic, uidFixed+sumSize)
	if err != nil {
		return "", err
	}
	if own != 0 {
		return "", corrupt(SideFileValue, 6, "reserved bytes are not zero")
	}
	n := int(getU16(b[8:]))
	if n == 0 || n > MaxUID {
		return "", corrupt(SideFileLength, 8, "a uid of %d bytes", n)
	}
	end := uidFixed + n
	if err := closeSide(b, end, end+sumSize); err != nil {
		return "", err
	}
	uid := string(b[uidFixed:end])
	if !utf8.ValidString(uid) {
		return "", corrupt(SideFileValue, uidFixed, "the uid is not UTF-8")
	}
	return UID(uid), nil
}
