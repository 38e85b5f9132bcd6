package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

var epoch = time.Unix(1_800_000_000, 0)

func newKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	private, err := GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

// signRaw signs any header and body as a compact JWS, the way a peer could.
func signRaw(t testing.TB, private ed25519.PrivateKey, header, body any) string {
	t.Helper()
	segment := func(v any) string {
		raw, isRaw := v.(string)
		if !isRaw {
			encoded, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			raw = string(encoded)
		}
		return base64.RawURLEncoding.EncodeToString([]byte(raw))
	}
	text := segment(header) + "." + segment(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(private, []byte(text)))
}

type object = map[string]any

func validBody() object {
	return object{
		"iss": "felix-auth", "aud": "felix-broker", "sub": "someone", "tid": "acme",
		"iat": epoch.Unix(), "exp": epoch.Add(15 * time.Minute).Unix(),
		"perms": []string{"stream.publish:stream:acme/n/s"},
	}
}

func with(body object, changes object) object {
	body = maps.Clone(body)
	for k, v := range changes {
		if v == nil {
			delete(body, k)
		} else {
			body[k] = v
		}
	}
	return body
}

func newVerifier(t testing.TB, keys ...Key) *Verifier {
	t.Helper()
	source := NewStaticKeys()
	if err := source.Set("acme", keys); err != nil {
		t.Fatal(err)
	}
	return NewVerifier(source, func() time.Time { return epoch })
}

func reason(err error) Reason {
	var refused *TokenError
	if errors.As(err, &refused) {
		return refused.Reason
	}
	return ""
}

func TestVerifyAcceptsAToken(t *testing.T) {
	private := newKey(t)
	signer := NewSigner("k1", private)
	v := newVerifier(t, signer.Key())
	token := signRaw(t, private, object{"alg": "EdDSA", "typ": "JWT", "kid": "k1"}, validBody())
	p, err := v.Verify(context.Background(), "acme", token)
	if err != nil {
		t.Fatal(err)
	}
	if p.Tenant != "acme" || p.Subject != "someone" || !p.Expires.Equal(epoch.Add(15*time.Minute)) {
		t.Errorf("principal is %+v", p)
	}
	if !p.Deadline().Equal(epoch.Add(16 * time.Minute)) {
		t.Errorf("deadline is %s", p.Deadline())
	}
	if !p.Grants.CanPublish("n", "s") || p.Grants.CanSubscribe("n", "s") {
		t.Error("grants are not those of the token")
	}
}

func TestVerifyClaims(t *testing.T) {
	private := newKey(t)
	v := newVerifier(t, NewSigner("k1", private).Key())
	at := func(d time.Duration) int64 { return epoch.Add(d).Unix() }
	for name, tt := range map[string]struct {
		body any
		want Reason
	}{
		"valid":                     {validBody(), ""},
		"other issuer":              {with(validBody(), object{"iss": "felix"}), ReasonIssuer},
		"no issuer":                 {with(validBody(), object{"iss": nil}), ReasonIssuer},
		"control plane's audience":  {with(validBody(), object{"aud": "felix-controlplane"}), ReasonAudience},
		"no audience":               {with(validBody(), object{"aud": nil}), ReasonAudience},
		"list of one audience":      {with(validBody(), object{"aud": []string{"felix-broker"}}), ReasonMalformed},
		"list of audiences":         {with(validBody(), object{"aud": []string{"felix-broker", "x"}}), ReasonMalformed},
		"no expiry":                 {with(validBody(), object{"exp": nil}), ReasonMalformed},
		"expiry is null":            {strings.Replace(mustJSON(t, validBody()), `"exp":1800000900`, `"exp":null`, 1), ReasonMalformed},
		"expiry is text":            {with(validBody(), object{"exp": "1800000900"}), ReasonMalformed},
		"expiry beyond time":        {with(validBody(), object{"exp": 1e300}), ReasonMalformed},
		"expiry before 1970":        {with(validBody(), object{"exp": -1}), ReasonMalformed},
		"expiry with a fraction":    {with(validBody(), object{"exp": float64(at(time.Minute)) + 0.5}), ""},
		"expired at the leeway":     {with(validBody(), object{"exp": at(-Leeway)}), ""},
		"expired past the leeway":   {with(validBody(), object{"exp": at(-Leeway - time.Second)}), ReasonExpired},
		"never expires":             {with(validBody(), object{"exp": NoExpiry().Unix()}), ""},
		"not before the leeway":     {with(validBody(), object{"nbf": at(Leeway)}), ""},
		"not before past leeway":    {with(validBody(), object{"nbf": at(Leeway + time.Second)}), ReasonNotYetValid},
		"issued in the future":      {with(validBody(), object{"iat": at(time.Hour)}), ""},
		"not issued":                {with(validBody(), object{"iat": nil}), ""},
		"other tenant":              {with(validBody(), object{"tid": "other"}), ReasonTenant},
		"no tenant":                 {with(validBody(), object{"tid": nil}), ReasonTenant},
		"no subject":                {with(validBody(), object{"sub": nil}), ReasonMalformed},
		"no permissions":            {with(validBody(), object{"perms": []string{}}), ""},
		"permissions are absent":    {with(validBody(), object{"perms": nil}), ""},
		"permissions are text":      {with(validBody(), object{"perms": "stream.publish:*"}), ReasonMalformed},
		"a permission is a number":  {with(validBody(), object{"perms": []any{1}}), ReasonMalformed},
		"unknown action among good": {with(validBody(), object{"perms": []string{"stream.publish:*", "stream.fly:*"}}), ReasonPermission},
		"unknown claims":            {with(validBody(), object{"act": object{"sub": "x"}, "jti": "1"}), ""},
		"not an object":             {"[1]", ReasonMalformed},
		"null":                      {"null", ReasonIssuer},
		"not JSON":                  {"{", ReasonMalformed},
	} {
		token := signRaw(t, private, object{"alg": "EdDSA", "kid": "k1"}, tt.body)
		p, err := v.Verify(context.Background(), "acme", token)
		if got := reason(err); got != tt.want || (err == nil) != (tt.want == "") || (p == nil) == (err == nil) {
			t.Errorf("%s: %v (%q), want %q", name, err, got, tt.want)
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestVerifyRefusesOtherAlgorithms(t *testing.T) {
	private := newKey(t)
	key := NewSigner("k1", private).Key()
	v := newVerifier(t, key)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	body := jwt.MapClaims(validBody())
	mint := func(m jwt.SigningMethod, k any) string {
		token, err := jwt.NewWithClaims(m, body).SignedString(k)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	// The classic confusion: the public key as an HMAC secret.
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"k1"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(mustJSON(t, validBody())))
	mac := hmac.New(sha256.New, key.Public)
	mac.Write([]byte(text))
	confused := text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))

	for name, token := range map[string]string{
		"RS256":        mint(jwt.SigningMethodRS256, rsaKey),
		"PS256":        mint(jwt.SigningMethodPS256, rsaKey),
		"HS256":        mint(jwt.SigningMethodHS256, []byte("secret")),
		"HS256 public": confused,
		"none":         mint(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType),
		"unknown":      signRaw(t, private, object{"alg": "Ed448"}, validBody()),
		"lower case":   signRaw(t, private, object{"alg": "eddsa"}, validBody()),
		"absent":       signRaw(t, private, object{"kid": "k1"}, validBody()),
		"number":       signRaw(t, private, object{"alg": 1}, validBody()),
	} {
		if _, err := v.Verify(context.Background(), "acme", token); reason(err) != ReasonAlgorithm {
			t.Errorf("%s: %v, want a refusal for its algorithm", name, err)
		}
		source := &countingKeys{keys: []Key{key}}
		if _, err := NewVerifier(source, time.Now).Verify(context.Background(), "acme", token); err == nil || source.lookups != 0 {
			t.Errorf("%s: %v after %d look-ups of keys, want none", name, err, source.lookups)
		}
	}
}

func TestVerifyRefusesWhatIsNoToken(t *testing.T) {
	private := newKey(t)
	v := newVerifier(t, NewSigner("k1", private).Key())
	good := signRaw(t, private, object{"alg": "EdDSA", "kid": "k1"}, validBody())
	parts := strings.Split(good, ".")
	for name, tt := range map[string]struct {
		token string
		want  Reason
	}{
		"empty":              {"", ReasonMalformed},
		"two parts":          {parts[0] + "." + parts[1], ReasonMalformed},
		"four parts":         {good + ".x", ReasonMalformed},
		"padding":            {good + "=", ReasonMalformed},
		"bearer":             {"Bearer " + good, ReasonMalformed},
		"no signature":       {parts[0] + "." + parts[1] + ".", ReasonSignature},
		"short signature":    {parts[0] + "." + parts[1] + "." + parts[2][:40], ReasonSignature},
		"changed body":       {parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(mustJSON(t, with(validBody(), object{"sub": "root"})))) + "." + parts[2], ReasonSignature},
		"JSON serialisation": {`{"payload":"` + parts[1] + `"}`, ReasonMalformed},
		"crit":               {signRaw(t, private, object{"alg": "EdDSA", "crit": []string{"b64"}, "b64": false}, validBody()), ReasonMalformed},
		"header is null":     {signRaw(t, private, "null", validBody()), ReasonAlgorithm},
		"too long":           {signRaw(t, private, object{"alg": "EdDSA", "pad": strings.Repeat("x", maxTokenLength)}, validBody()), ReasonMalformed},
	} {
		_, err := v.Verify(context.Background(), "acme", tt.token)
		if reason(err) != tt.want {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestVerifyTriesTheNamedKeyFirstThenAll(t *testing.T) {
	a, b, stranger := newKey(t), newKey(t), newKey(t)
	keyA, keyB := NewSigner("a", a).Key(), NewSigner("b", b).Key()
	twin := Key{ID: "a", Public: keyB.Public} // two keys with one id
	for name, tt := range map[string]struct {
		keys    []Key
		private ed25519.PrivateKey
		header  object
		want    Reason
	}{
		"named":          {[]Key{keyA, keyB}, b, object{"alg": "EdDSA", "kid": "b"}, ""},
		"named wrongly":  {[]Key{keyA, keyB}, b, object{"alg": "EdDSA", "kid": "a"}, ""},
		"unknown name":   {[]Key{keyA, keyB}, b, object{"alg": "EdDSA", "kid": "zzz"}, ""},
		"unnamed":        {[]Key{keyA, keyB}, b, object{"alg": "EdDSA"}, ""},
		"name is number": {[]Key{keyA, keyB}, b, object{"alg": "EdDSA", "kid": 7}, ""},
		"twins":          {[]Key{keyA, twin}, b, object{"alg": "EdDSA", "kid": "a"}, ""},
		"stranger":       {[]Key{keyA, keyB}, stranger, object{"alg": "EdDSA", "kid": "a"}, ReasonSignature},
	} {
		v := newVerifier(t, tt.keys...)
		_, err := v.Verify(context.Background(), "acme", signRaw(t, tt.private, tt.header, validBody()))
		if reason(err) != tt.want {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	set, err := newVerifier(t, keyA, keyB).candidates(context.Background(), "acme", &jwt.Token{Header: object{"kid": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	if keys := set.(jwt.VerificationKeySet).Keys; len(keys) != 2 || !keyB.Public.Equal(keys[0].(ed25519.PublicKey)) {
		t.Errorf("candidates are %v, want the named key first and every key once", keys)
	}
}

// countingKeys counts look-ups and answers all of them alike.
type countingKeys struct {
	lookups int
	keys    []Key
	err     error
}

func (c *countingKeys) Keys(context.Context, string) ([]Key, error) {
	c.lookups++
	return c.keys, c.err
}

func TestVerifyLooksUpOnlyWhatMayExist(t *testing.T) {
	private := newKey(t)
	token := signRaw(t, private, object{"alg": "EdDSA"}, validBody())
	for _, tenant := range []string{"", ".", "..", strings.Repeat("x", 257), "a\x00b", "a\nb", "a\u009bb", "a\xffb"} {
		source := &countingKeys{}
		_, err := NewVerifier(source, time.Now).Verify(context.Background(), tenant, token)
		if reason(err) != ReasonTenantID || source.lookups != 0 {
			t.Errorf("tenant %q: %v after %d look-ups", tenant, err, source.lookups)
		}
	}
	source := &countingKeys{}
	if _, err := NewVerifier(source, time.Now).Verify(context.Background(), "acme", "not.a.token"); reason(err) != ReasonMalformed || source.lookups != 0 {
		t.Errorf("no token: %v after %d look-ups", err, source.lookups)
	}
	for _, tenant := range []string{strings.Repeat("x", 256), "...", "a b", "é"} {
		if !ValidTenant(tenant) {
			t.Errorf("tenant %q is refused", tenant)
		}
	}
}

func TestVerifyTellsUnknownFromUnavailable(t *testing.T) {
	private := newKey(t)
	token := signRaw(t, private, object{"alg": "EdDSA"}, validBody())
	cause := errors.New("key server is down")
	for _, tt := range []struct {
		source    *countingKeys
		want      Reason
		temporary bool
	}{
		{&countingKeys{err: ErrUnknownTenant}, ReasonTenantKeys, false},
		{&countingKeys{}, ReasonTenantKeys, false},
		{&countingKeys{err: cause}, ReasonUnavailable, true},
		{&countingKeys{err: context.DeadlineExceeded}, ReasonUnavailable, true},
	} {
		_, err := NewVerifier(tt.source, time.Now).Verify(context.Background(), "acme", token)
		var refused *TokenError
		if !errors.As(err, &refused) || refused.Reason != tt.want || refused.Temporary() != tt.temporary {
			t.Errorf("source says %v: %v, want %q", tt.source.err, err, tt.want)
		}
		if tt.want == ReasonUnavailable && !errors.Is(err, tt.source.err) {
			t.Errorf("%v does not wrap %v", err, tt.source.err)
		}
	}
}

func TestReplacedKeysCountAtOnce(t *testing.T) {
	oldSigner, newSigner := NewSigner("", newKey(t)), NewSigner("", newKey(t))
	source := NewStaticKeys()
	v := NewVerifier(source, func() time.Time { return epoch })
	verify := func(s *Signer) Reason {
		token, err := s.Mint(Claims{Tenant: "acme", Subject: "x", IssuedAt: epoch, Expires: epoch.Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = v.Verify(context.Background(), "acme", token)
		return reason(err)
	}
	steps := []struct {
		keys     []Key
		old, new Reason
	}{
		{nil, ReasonTenantKeys, ReasonTenantKeys},
		{[]Key{oldSigner.Key()}, "", ReasonSignature},
		{[]Key{newSigner.Key(), oldSigner.Key()}, "", ""},
		{[]Key{newSigner.Key()}, ReasonSignature, ""},
		{nil, ReasonTenantKeys, ReasonTenantKeys},
	}
	for i, step := range steps {
		if err := source.Set("acme", step.keys); err != nil {
			t.Fatal(err)
		}
		if got := verify(oldSigner); got != step.old {
			t.Errorf("step %d: old key: %q, want %q", i, got, step.old)
		}
		if got := verify(newSigner); got != step.new {
			t.Errorf("step %d: new key: %q, want %q", i, got, step.new)
		}
	}
}

func TestStaticKeysRefuseBadSets(t *testing.T) {
	source := NewStaticKeys()
	good := NewSigner("", newKey(t)).Key()
	if err := source.Set("acme", []Key{good}); err != nil {
		t.Fatal(err)
	}
	many := make([]Key, MaxKeys+1)
	for i := range many {
		many[i] = good
	}
	for name, keys := range map[string][]Key{"too many": many, "short": {{ID: "x", Public: good.Public[:31]}}, "no key": {{ID: "x"}}} {
		if err := source.Set("acme", keys); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if keys, err := source.Keys(context.Background(), "acme"); err != nil || len(keys) != 1 {
		t.Errorf("after refused sets the tenant has %d keys, %v", len(keys), err)
	}
}

// TestErrorsHoldNoToken looks for any run of the token in the error's text.
func TestErrorsHoldNoToken(t *testing.T) {
	private := newKey(t)
	v := newVerifier(t, NewSigner("k1", newKey(t)).Key())
	secret := "c2VjcmV0LXNlY3JldC1zZWNyZXQ"
	for _, token := range []string{
		secret, secret + "." + secret + "." + secret, "{" + secret,
		signRaw(t, private, object{"alg": secret}, validBody()),
		signRaw(t, private, object{"alg": "EdDSA", "kid": secret}, validBody()),
		signRaw(t, private, object{"alg": "EdDSA"}, with(validBody(), object{"exp": secret})),
		signRaw(t, private, `{"alg":"EdDSA"`+secret, validBody()),
	} {
		_, err := v.Verify(context.Background(), "acme", token)
		if err == nil {
			t.Fatalf("accepted %q", token)
		}
		for text := range strings.FieldsFuncSeq(token, func(r rune) bool { return r == '.' }) {
			if len(text) > 8 && strings.Contains(err.Error(), text[:8]) {
				t.Errorf("%q shows a part of the token", err)
			}
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q shows a part of the token", err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	private := newKey(f)
	v := newVerifier(f, NewSigner("k1", newKey(f)).Key())
	f.Add(signRaw(f, private, object{"alg": "EdDSA", "kid": "k1"}, validBody()))
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		if p, err := v.Verify(context.Background(), "acme", token); err == nil {
			t.Fatalf("%q, which no key of the tenant signed, is %+v", token, p)
		} else if reason(err) == "" {
			t.Fatalf("%v is no TokenError", err)
		}
	})
}
