package postgres

import "github.com/felixlog/felix/controlplane/model"

// keyLists are keys of shards as lists of columns, for statements about many.
type keyLists struct {
	tenants, namespaces, names []string
	shards                     []int64
	kinds                      []string
}

func (l *keyLists) add(k model.ShardKey) {
	l.tenants = append(l.tenants, k.TenantID)
	l.namespaces = append(l.namespaces, k.Namespace)
	l.names = append(l.names, k.Stream)
	l.shards = append(l.shards, int64(k.Shard))
	l.kinds = append(l.kinds, string(k.Kind))
}

func (l *keyLists) values() []any {
	return []any{l.tenants, l.namespaces, l.names, l.shards, l.kinds}
}

// inKeys chooses the rows of the keys that values holds.
const inKeys = `(` + keyColumns + `) IN (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[]))`
