package segment

// appendSide begins a side file: magic, version, and 16 bits of its own.
func appendSide(dst []byte, magic uint32, own uint16) []byte {
	dst = appendU32(dst, magic)
	dst = appendU16(dst, FormatVersion)
	return appendU16(dst, own)
}

// openSide checks the beginning of a side file and returns its own 16 bits.
func openSide(b []byte, magic uint32, least int) (own uint16, err error) {
	if len(b) < least {
		return 0, truncated(least, len(b))
	}
	if m := getU32(b); m != magic {
		return 0, corrupt(SideFileMagic, 0, "%08x", m)
	}
	if v := getU16(b[4:]); v != FormatVersion {
		return 0, corrupt(SideFileVersion, 4, "%d, known is %d", v, FormatVersion)
	}
	return getU16(b[6:]), nil
}

// closeSide checks that the file is size bytes, and that those before sumAt
// have the checksum found there.
func closeSide(b []byte, sumAt, size int) error {
	if len(b) < size {
		return truncated(size, len(b))
	}
	if len(b) > size { // a longer file was not written by this version
		return corrupt(SideFileLength, int64(size), "%d bytes behind the end", len(b)-size)
	}
	if sum, want := checksum(b[:sumAt]), getU32(b[sumAt:]); sum != want {
		return corrupt(SideFileChecksum, int64(sumAt), "computed %08x, stored %08x", sum, want)
	}
	return nil
}
