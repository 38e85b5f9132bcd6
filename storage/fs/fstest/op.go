package fstest

// Op is a kind of operation on a file system or on one of its files.
type Op uint8

// The operations. Those from Read on are on an open file.
const (
	OpCreate Op = iota
	OpOpen
	OpOpenWrite
	OpRemove
	OpRename
	OpMkdir
	OpList
	OpStat
	OpSyncDir
	OpLock
	OpFree
	OpRead
	OpWrite
	OpSync
	OpTruncate
	OpSize
	OpReserve
	OpClose
	ops
)

var opNames = [ops]string{
	"create", "open", "open for writing", "remove", "rename", "mkdir", "list", "stat", "sync directory", "lock", "free",
	"read", "write", "sync", "truncate", "size", "reserve", "close",
}

func (o Op) String() string {
	if o < ops {
		return opNames[o]
	}
	return "unknown"
}
