-- The schema of control plane 11.1. Names compare byte by byte (COLLATE "C"), so
-- that the order of keys is that of the other stores. Numbers without a sign
-- that people or brokers choose freely are NUMERIC(20); those that count are
-- BIGINT.

-- +goose Up

-- The catalogue.

CREATE TABLE tenants (
    tenant_id         TEXT COLLATE "C" PRIMARY KEY,
    display_name      TEXT NOT NULL,
    auth_bootstrapped BOOLEAN NOT NULL DEFAULT false,
    created_at        TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at        TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE namespaces (
    tenant_id    TEXT COLLATE "C" NOT NULL,
    namespace    TEXT COLLATE "C" NOT NULL,
    display_name TEXT NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, namespace),
    CONSTRAINT namespaces_tenant FOREIGN KEY (tenant_id) REFERENCES tenants ON DELETE CASCADE
);

CREATE TABLE streams (
    tenant_id                 TEXT COLLATE "C" NOT NULL,
    namespace                 TEXT COLLATE "C" NOT NULL,
    stream                    TEXT COLLATE "C" NOT NULL,
    kind                      TEXT NOT NULL,
    shards                    BIGINT NOT NULL,
    replication_factor        BIGINT NOT NULL DEFAULT 1,
    retention_max_age_seconds NUMERIC(20) NULL,
    retention_max_size_bytes  NUMERIC(20) NULL,
    consistency               TEXT NOT NULL,
    delivery                  TEXT NOT NULL,
    durable                   BOOLEAN NOT NULL,
    region                    TEXT NOT NULL DEFAULT '',
    routing                   TEXT NOT NULL DEFAULT '',
    uid                       TEXT NOT NULL DEFAULT '',
    created_at                TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at                TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, namespace, stream),
    CONSTRAINT streams_namespace FOREIGN KEY (tenant_id, namespace) REFERENCES namespaces ON DELETE CASCADE
);

CREATE TABLE caches (
    tenant_id          TEXT COLLATE "C" NOT NULL,
    namespace          TEXT COLLATE "C" NOT NULL,
    cache              TEXT COLLATE "C" NOT NULL,
    display_name       TEXT NOT NULL,
    shards             BIGINT NOT NULL DEFAULT 1,
    replication_factor BIGINT NOT NULL DEFAULT 1,
    consistency        TEXT NOT NULL DEFAULT 'Leader',
    uid                TEXT NOT NULL DEFAULT '',
    created_at         TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at         TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, namespace, cache),
    CONSTRAINT caches_namespace FOREIGN KEY (tenant_id, namespace) REFERENCES namespaces ON DELETE CASCADE
);

CREATE TABLE bridges (
    source      TEXT COLLATE "C" NOT NULL,
    destination TEXT COLLATE "C" NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (source, destination)
);

-- The fleet. A heartbeat changes no indexed column and finds room in its page,
-- so that it writes no index.

CREATE TABLE nodes (
    node_id                  TEXT COLLATE "C" PRIMARY KEY,
    advertise_addr           TEXT NOT NULL,
    client_addr              TEXT NOT NULL DEFAULT '',
    kafka_addr               TEXT NOT NULL DEFAULT '',
    region                   TEXT NOT NULL,
    zone                     TEXT NOT NULL DEFAULT '',
    labels                   JSONB NOT NULL DEFAULT '{}',
    capacity_max_shards      BIGINT NULL,
    capacity_weight          BIGINT NOT NULL DEFAULT 1,
    features                 TEXT[] NOT NULL DEFAULT '{}',
    lifecycle                TEXT NOT NULL,
    last_heartbeat_at_millis BIGINT NOT NULL,
    registered_at_millis     BIGINT NOT NULL,
    incarnation              BIGINT NOT NULL DEFAULT 0,
    created_at               TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at               TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT nodes_advertise_addr UNIQUE (advertise_addr)
) WITH (fillfactor = 50);

CREATE TABLE fleet_features (
    feature    TEXT COLLATE "C" PRIMARY KEY,
    enabled_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- Who serves what.

CREATE TABLE shard_assignments (
    tenant_id              TEXT COLLATE "C" NOT NULL,
    namespace              TEXT COLLATE "C" NOT NULL,
    stream                 TEXT COLLATE "C" NOT NULL,
    shard                  BIGINT NOT NULL,
    kind                   TEXT COLLATE "C" NOT NULL DEFAULT 'stream' CHECK (kind IN ('stream', 'cache')),
    leader                 TEXT COLLATE "C" NOT NULL,
    replicas               TEXT[] NOT NULL DEFAULT '{}',
    generation             BIGINT NOT NULL DEFAULT 0,
    state                  TEXT NOT NULL,
    successor              TEXT NOT NULL DEFAULT '',
    joining                TEXT NOT NULL DEFAULT '',
    move_started_at_millis NUMERIC(20) NULL,
    move_reason            TEXT NOT NULL DEFAULT '',
    routing                TEXT NOT NULL DEFAULT '',
    stream_ref             TEXT COLLATE "C" GENERATED ALWAYS AS (CASE WHEN kind = 'stream' THEN stream END) STORED,
    cache_ref              TEXT COLLATE "C" GENERATED ALWAYS AS (CASE WHEN kind = 'cache' THEN stream END) STORED,
    created_at             TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at             TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, namespace, stream, shard, kind),
    CONSTRAINT shard_assignments_stream FOREIGN KEY (tenant_id, namespace, stream_ref) REFERENCES streams ON DELETE CASCADE,
    CONSTRAINT shard_assignments_cache FOREIGN KEY (tenant_id, namespace, cache_ref) REFERENCES caches ON DELETE CASCADE
);
CREATE INDEX shard_assignments_leader ON shard_assignments (leader);

CREATE TABLE replica_reports (
    tenant_id          TEXT COLLATE "C" NOT NULL,
    namespace          TEXT COLLATE "C" NOT NULL,
    stream             TEXT COLLATE "C" NOT NULL,
    shard              BIGINT NOT NULL,
    kind               TEXT COLLATE "C" NOT NULL,
    generation         BIGINT NOT NULL,
    caught_up          TEXT[] NOT NULL DEFAULT '{}',
    offsets            JSONB NOT NULL DEFAULT '{}',
    reported_at_millis BIGINT NOT NULL,
    drained            BOOLEAN NOT NULL DEFAULT false,
    leader_offset      NUMERIC(20) NULL,
    PRIMARY KEY (tenant_id, namespace, stream, shard, kind),
    CONSTRAINT replica_reports_assignment FOREIGN KEY (tenant_id, namespace, stream, shard, kind)
        REFERENCES shard_assignments ON DELETE CASCADE
) WITH (fillfactor = 50);

CREATE TABLE placement_settings (
    id           SMALLINT PRIMARY KEY CHECK (id = 1),
    moves_paused BOOLEAN NOT NULL DEFAULT false,
    updated_at   TIMESTAMPTZ NOT NULL DEFAULT now()
);
INSERT INTO placement_settings (id) VALUES (1);

CREATE TABLE placement_lease (
    id         SMALLINT PRIMARY KEY CHECK (id = 1),
    holder     TEXT NULL,
    expires_at TIMESTAMPTZ NULL,
    token      BIGINT NOT NULL DEFAULT 0
);
INSERT INTO placement_lease (id) VALUES (1);

-- What identities rest on.

CREATE TABLE idp_issuers (
    tenant_id     TEXT COLLATE "C" NOT NULL,
    issuer        TEXT COLLATE "C" NOT NULL,
    audiences     TEXT[] NOT NULL,
    discovery_url TEXT NULL,
    jwks_url      TEXT NULL,
    subject_claim TEXT NOT NULL DEFAULT 'sub',
    groups_claim  TEXT NULL,
    PRIMARY KEY (tenant_id, issuer),
    CONSTRAINT idp_issuers_tenant FOREIGN KEY (tenant_id) REFERENCES tenants ON DELETE CASCADE
);

-- position says which key is newest.
CREATE TABLE tenant_signing_keys (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    kid        TEXT COLLATE "C" NOT NULL,
    alg        TEXT NOT NULL DEFAULT 'EdDSA',
    seed       BYTEA NOT NULL,
    public     BYTEA NOT NULL,
    status     TEXT NOT NULL CHECK (status IN ('staged', 'current', 'previous')),
    position   BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, kid),
    CONSTRAINT tenant_signing_keys_tenant FOREIGN KEY (tenant_id) REFERENCES tenants ON DELETE CASCADE
);
CREATE UNIQUE INDEX tenant_signing_keys_current ON tenant_signing_keys (tenant_id) WHERE status = 'current';

CREATE TABLE rbac_policies (
    tenant_id TEXT COLLATE "C" NOT NULL,
    subject   TEXT COLLATE "C" NOT NULL,
    object    TEXT COLLATE "C" NOT NULL,
    action    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, subject, object, action),
    CONSTRAINT rbac_policies_tenant FOREIGN KEY (tenant_id) REFERENCES tenants ON DELETE CASCADE
);

CREATE TABLE rbac_groupings (
    tenant_id TEXT COLLATE "C" NOT NULL,
    user_id   TEXT COLLATE "C" NOT NULL,
    role      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, user_id, role),
    CONSTRAINT rbac_groupings_tenant FOREIGN KEY (tenant_id) REFERENCES tenants ON DELETE CASCADE
);

CREATE TABLE refresh_tokens (
    tenant_id       TEXT COLLATE "C" NOT NULL,
    token_id        TEXT COLLATE "C" NOT NULL,
    principal_id    TEXT NOT NULL,
    groups          TEXT[] NOT NULL DEFAULT '{}',
    issuer          TEXT NOT NULL DEFAULT '',
    secret_hash     TEXT NOT NULL,
    family_id       TEXT NOT NULL,
    audience        TEXT NOT NULL DEFAULT '',
    actor           TEXT NOT NULL DEFAULT '',
    narrowing       JSONB NULL,
    issued_at_secs  BIGINT NOT NULL,
    expires_at_secs BIGINT NOT NULL,
    used            BOOLEAN NOT NULL DEFAULT false,
    revoked         BOOLEAN NOT NULL DEFAULT false,
    PRIMARY KEY (tenant_id, token_id),
    CONSTRAINT refresh_tokens_tenant FOREIGN KEY (tenant_id) REFERENCES tenants ON DELETE CASCADE
);
CREATE INDEX refresh_tokens_family ON refresh_tokens (tenant_id, family_id);
CREATE INDEX refresh_tokens_principal ON refresh_tokens (tenant_id, principal_id);
CREATE INDEX refresh_tokens_expiry ON refresh_tokens (expires_at_secs);

-- The feeds. Each has its entries, and one row that gives their sequence: who
-- has updated the row makes all others wait for the commit, so that the order
-- of sequences is that of commits (control plane 5.2).

CREATE TABLE tenant_changes (
    seq       BIGINT PRIMARY KEY,
    op        TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    payload   JSONB NULL,
    ts        TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE namespace_changes (
    seq       BIGINT PRIMARY KEY,
    op        TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    namespace TEXT NOT NULL,
    payload   JSONB NULL,
    ts        TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE stream_changes (
    seq       BIGINT PRIMARY KEY,
    op        TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    namespace TEXT NOT NULL,
    stream    TEXT NOT NULL,
    payload   JSONB NULL,
    tombstone JSONB NULL,
    ts        TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE cache_changes (
    seq       BIGINT PRIMARY KEY,
    op        TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    namespace TEXT NOT NULL,
    cache     TEXT NOT NULL,
    payload   JSONB NULL,
    tombstone JSONB NULL,
    ts        TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE node_changes (
    seq     BIGINT PRIMARY KEY,
    op      TEXT NOT NULL,
    node_id TEXT NOT NULL,
    payload JSONB NULL,
    ts      TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE shard_assignment_changes (
    seq       BIGINT PRIMARY KEY,
    op        TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    namespace TEXT NOT NULL,
    stream    TEXT NOT NULL,
    shard     BIGINT NOT NULL,
    kind      TEXT NOT NULL,
    payload   JSONB NULL,
    ts        TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE tenant_change_seq (only_row BOOLEAN PRIMARY KEY DEFAULT true CHECK (only_row), next_seq BIGINT NOT NULL DEFAULT 0);
CREATE TABLE namespace_change_seq (only_row BOOLEAN PRIMARY KEY DEFAULT true CHECK (only_row), next_seq BIGINT NOT NULL DEFAULT 0);
CREATE TABLE stream_change_seq (only_row BOOLEAN PRIMARY KEY DEFAULT true CHECK (only_row), next_seq BIGINT NOT NULL DEFAULT 0);
CREATE TABLE cache_change_seq (only_row BOOLEAN PRIMARY KEY DEFAULT true CHECK (only_row), next_seq BIGINT NOT NULL DEFAULT 0);
CREATE TABLE node_change_seq (only_row BOOLEAN PRIMARY KEY DEFAULT true CHECK (only_row), next_seq BIGINT NOT NULL DEFAULT 0);
CREATE TABLE shard_assignment_change_seq (only_row BOOLEAN PRIMARY KEY DEFAULT true CHECK (only_row), next_seq BIGINT NOT NULL DEFAULT 0);
INSERT INTO tenant_change_seq DEFAULT VALUES;
INSERT INTO namespace_change_seq DEFAULT VALUES;
INSERT INTO stream_change_seq DEFAULT VALUES;
INSERT INTO cache_change_seq DEFAULT VALUES;
INSERT INTO node_change_seq DEFAULT VALUES;
INSERT INTO shard_assignment_change_seq DEFAULT VALUES;

-- The deletions of streams and caches, for brokers that were away. seq is that
-- of the change, so the greatest are the newest.
CREATE TABLE tombstones (
    kind              TEXT COLLATE "C" NOT NULL CHECK (kind IN ('stream', 'cache')),
    seq               BIGINT NOT NULL,
    tenant_id         TEXT COLLATE "C" NOT NULL,
    namespace         TEXT COLLATE "C" NOT NULL,
    name              TEXT COLLATE "C" NOT NULL,
    uid               TEXT NOT NULL,
    deleted_at_millis BIGINT NOT NULL,
    PRIMARY KEY (kind, seq)
);
