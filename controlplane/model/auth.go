package model

// An IdpIssuer is an identity provider that a tenant trusts (control plane
// 4.9).
type IdpIssuer struct {
	Issuer        string        `json:"issuer"`
	Audiences     []string      `json:"audiences"`
	DiscoveryURL  *string       `json:"discovery_url"`
	JWKSURL       *string       `json:"jwks_url"`
	ClaimMappings ClaimMappings `json:"claim_mappings"`
}

// ClaimMappings name the claims of an upstream token that say who it is for.
type ClaimMappings struct {
	SubjectClaim string  `json:"subject_claim"` // "sub" where it is empty
	GroupsClaim  *string `json:"groups_claim"`  // nil: no groups
}

// A Policy lets a subject do an action to an object.
type Policy struct {
	Subject string `json:"subject"`
	Object  string `json:"object"`
	Action  string `json:"action"`
}

// A Grouping gives a user a role.
type Grouping struct {
	User string `json:"user"`
	Role string `json:"role"`
}

// KeyStatus is what a signing key is used for.
type KeyStatus string

// The statuses of keys. All verify; one signs.
const (
	KeyStaged   KeyStatus = "staged"
	KeyCurrent  KeyStatus = "current"
	KeyPrevious KeyStatus = "previous"
)

// A SigningKey is an Ed25519 key of a tenant. It is a secret and has no place
// in an answer or a log.
type SigningKey struct {
	KID    string    `json:"kid"`
	Seed   []byte    `json:"seed"`   // 32 bytes
	Public []byte    `json:"public"` // 32 bytes
	Status KeyStatus `json:"status"`
}

// String hides the seed.
func (k SigningKey) String() string { return "signing key " + k.KID }

// GoString hides the seed.
func (k SigningKey) GoString() string { return k.String() }

// A RefreshToken is what is kept of one: never the secret, only its hash
// (control plane 15.5).
type RefreshToken struct {
	TenantID      string     `json:"tenant_id"`
	TokenID       string     `json:"token_id"`
	PrincipalID   string     `json:"principal_id"`
	Groups        []string   `json:"groups"`      // issuer-scoped
	Issuer        string     `json:"issuer"`      // that vouched for principal and groups
	SecretHash    string     `json:"secret_hash"` // lower-case hex of SHA-256
	FamilyID      string     `json:"family_id"`
	Audience      string     `json:"audience"`
	Actor         string     `json:"actor,omitempty"` // who may act for the principal
	Narrowing     *Narrowing `json:"narrowing,omitempty"`
	IssuedAtSecs  uint64     `json:"issued_at_secs"`
	ExpiresAtSecs uint64     `json:"expires_at_secs"`
	Used          bool       `json:"used"`
	Revoked       bool       `json:"revoked"`
}

// A Narrowing is what an exchange asked to be cut down to; nil lists cut
// nothing.
type Narrowing struct {
	Actions   []string `json:"actions"`
	Resources []string `json:"resources"`
}

// An AuthSeed is what bootstrap gives a tenant, all or nothing.
type AuthSeed struct {
	Key       SigningKey  `json:"key"` // installed unless the tenant has one
	Issuers   []IdpIssuer `json:"issuers"`
	Policies  []Policy    `json:"policies"`
	Groupings []Grouping  `json:"groupings"`
}
