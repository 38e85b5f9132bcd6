package segment

import (
	"fmt"
	"strconv"
	"strings"
)

// The names in a log's directory (storage 2).
const (
	MarkFile      = "durable.mark"
	EpochsFile    = "epochs"
	ReplicaFile   = "replica"
	BallotFile    = "ballot"
	IdentityFile  = "identity"
	ProducersFile = "producers"
	UIDFile       = "uid"

	dataSuffix  = ".log"
	indexSuffix = ".index"
	idDigits    = 20
)

// MaxSideFile bounds the side files of this package, in bytes.
const MaxSideFile = 16 << 10

// FileName is the name of the segment with that id.
func FileName(id uint64) string { return fmt.Sprintf("%0*d", idDigits, id) + dataSuffix }

// IndexName is the name of its index.
func IndexName(id uint64) string { return fmt.Sprintf("%0*d", idDigits, id) + indexSuffix }

// ParseFileName reads the id from the name of a segment; ok is false for any
// other name.
func ParseFileName(name string) (id uint64, ok bool) { return parseName(name, dataSuffix) }

// ParseIndexName reads the id from the name of an index.
func ParseIndexName(name string) (id uint64, ok bool) { return parseName(name, indexSuffix) }

func parseName(name, suffix string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != idDigits || strings.TrimLeft(digits, "0123456789") != "" {
		return 0, false
	}
	id, err := strconv.ParseUint(digits, 10, 64)
	return id, err == nil
}
