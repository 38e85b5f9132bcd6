package cli

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixlog/felix/client"
)

func TestParseClaim(t *testing.T) {
	for text, want := range map[string]client.Claim{
		"0:0":      {},
		"0:17":     {Offset: 17},
		"3:17:2":   {Shard: 3, Offset: 17, Attempts: 2},
		"03:017:2": {Shard: 3, Offset: 17, Attempts: 2},
		"4294967295:18446744073709551615:4294967295": {Shard: math.MaxUint32, Offset: math.MaxUint64, Attempts: math.MaxUint32},
	} {
		if got, err := parseClaim(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ":", "17", "0:", ":17", "0:17:", "0:17:0", "0:17:1:1", "-1:17", "+1:17", "0:+17", "0:-1", "0:17:+1", "0:17:-1",
		"0x1:17", "1_0:17", "0:17 ", " 0:17", "0:1.5", "4294967296:0", "0:18446744073709551616", "0:0:4294967296", "a:b", "0,17",
	} {
		if got, err := parseClaim(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestParseClaims(t *testing.T) {
	claims, err := parseClaims([]string{"0:1", "1:1", "0:2:3"})
	if err != nil || len(claims) != 3 || claims[2] != (client.Claim{Offset: 2, Attempts: 3}) {
		t.Errorf("%+v, %v", claims, err)
	}
	for _, texts := range [][]string{{"0:1", "x"}, {"0:1", "0:1"}, {"0:1", "0:1:2"}, {"0:1:1", "1:1:1", "00:01:5"}} {
		if got, err := parseClaims(texts); err == nil {
			t.Errorf("%q is read as %+v", texts, got)
		}
	}
}

func TestClaimsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claim := client.Claim{Shard: rapid.Uint32().Draw(t, "shard"), Offset: rapid.Uint64().Draw(t, "offset"), Attempts: rapid.Uint32().Draw(t, "attempts")}
		if got, err := parseClaim(formatClaim(claim)); err != nil || got != claim {
			t.Errorf("%+v came back as %+v, %v", claim, got, err)
		}
	})
}

// Whatever is read as a claim is what it says: written again and read again
// it is the same.
func FuzzParseClaim(f *testing.F) {
	for _, seed := range []string{"0:17", "3:17:2", "0:17:0", "00:1:01", "+1:2", "1:2:3:4", "4294967296:0", "١:٢", "0:17\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		claim, err := parseClaim(text)
		if err != nil {
			if explain(err).Exit != ExitUsage {
				t.Errorf("%q: %v is not wrong usage", text, err)
			}
			return
		}
		again, err := parseClaim(formatClaim(claim))
		if err != nil || again != claim {
			t.Errorf("%q is %+v, then %+v, %v", text, claim, again, err)
		}
	})
}
