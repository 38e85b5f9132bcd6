package storetest

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// newKey is one in form; stores do not use keys. Its status is for the store to
// say.
func newKey(kid string) model.SigningKey {
	pad := func(b byte) []byte { return append(bytes.Repeat([]byte{b}, 32-len(kid)%32), kid[:len(kid)%32]...) }
	return model.SigningKey{KID: kid, Seed: pad(0xff), Public: pad(0x00), Status: "odd"}
}

func as(k model.SigningKey, s model.KeyStatus) model.SigningKey {
	k.Status = s
	return k
}

func testKeys(f *fixture) {
	t := f.tenant("a")
	a, b, c, d := newKey("a"), newKey("b"), newKey("c"), newKey("d")
	check := func(got []model.SigningKey, keys ...model.SigningKey) {
		f.Helper()
		f.same(got, keys)
		f.same(want(f.SigningKeys(f.ctx, t))(f), keys)
	}
	f.same(want(f.SigningKeys(f.ctx, t))(f), []model.SigningKey{})
	check(want(f.EnsureSigningKey(f.ctx, t, a))(f), as(a, model.KeyCurrent))
	check(want(f.EnsureSigningKey(f.ctx, t, b))(f), as(a, model.KeyCurrent))
	check(want(f.StageSigningKey(f.ctx, t, b))(f), as(a, model.KeyCurrent), as(b, model.KeyStaged))
	check(want(f.StageSigningKey(f.ctx, t, c))(f), as(a, model.KeyCurrent), as(c, model.KeyStaged), as(b, model.KeyStaged))
	for _, there := range []model.SigningKey{a, b} {
		_, err := f.StageSigningKey(f.ctx, t, there)
		f.conflict(err, store.Exists)
	}
	check(want(f.ActivateSigningKey(f.ctx, t, "b"))(f), as(b, model.KeyCurrent), as(c, model.KeyStaged), as(a, model.KeyPrevious))
	check(want(f.ActivateSigningKey(f.ctx, t, "b"))(f), as(b, model.KeyCurrent), as(c, model.KeyStaged), as(a, model.KeyPrevious))
	check(want(f.StageSigningKey(f.ctx, t, d))(f), as(b, model.KeyCurrent), as(d, model.KeyStaged), as(c, model.KeyStaged), as(a, model.KeyPrevious))
	check(want(f.ActivateSigningKey(f.ctx, t, "c"))(f), as(c, model.KeyCurrent), as(d, model.KeyStaged), as(b, model.KeyPrevious), as(a, model.KeyPrevious))
	_, err := f.ActivateSigningKey(f.ctx, t, "none")
	f.missing(err, "")
	_, err = f.RetireSigningKey(f.ctx, t, "none")
	f.missing(err, "")
	_, err = f.RetireSigningKey(f.ctx, t, "c")
	f.conflict(err, store.CurrentKey)
	check(want(f.RetireSigningKey(f.ctx, t, "a"))(f), as(c, model.KeyCurrent), as(d, model.KeyStaged), as(b, model.KeyPrevious))
	check(want(f.RetireSigningKey(f.ctx, t, "d"))(f), as(c, model.KeyCurrent), as(b, model.KeyPrevious))
	// A previous key may sign again.
	check(want(f.ActivateSigningKey(f.ctx, t, "b"))(f), as(b, model.KeyCurrent), as(c, model.KeyPrevious))

	// Keys are bounded, and other tenants have their own, of the same name too.
	for i := range 30 {
		want(f.StageSigningKey(f.ctx, t, newKey(fmt.Sprintf("k%d", i))))(f)
	}
	f.same(len(want(f.SigningKeys(f.ctx, t))(f)), 32)
	_, err = f.StageSigningKey(f.ctx, t, newKey("more"))
	f.conflict(err, store.TooManyKeys)
	want(f.RetireSigningKey(f.ctx, t, "k3"))(f)
	f.same(len(want(f.StageSigningKey(f.ctx, t, newKey("more")))(f)), 32)
	other := f.tenant("b")
	f.same(want(f.EnsureSigningKey(f.ctx, other, b))(f), []model.SigningKey{as(b, model.KeyCurrent)})
}

// testEnsureRace has several instances give a tenant its first key.
func testEnsureRace(f *fixture) {
	t := f.tenant("a")
	var mu sync.Mutex
	answers := map[string]int{}
	together(8, func(i int) {
		keys, err := f.EnsureSigningKey(f.ctx, t, newKey(fmt.Sprintf("k%d", i)))
		mu.Lock()
		defer mu.Unlock()
		answers[fmt.Sprint(asJSON(keys), err)]++
	})
	keys := want(f.SigningKeys(f.ctx, t))(f)
	f.same(len(keys), 1)
	f.same(answers, map[string]int{fmt.Sprint(asJSON(keys), nil): 8})
}
