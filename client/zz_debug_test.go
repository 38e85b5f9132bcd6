package client_test
import ("testing";"log/slog";"os";"time";"context";"fmt"
"github.com/felixlog/felix/client"
"github.com/felixlog/felix/felixtest")
func TestZZ(t *testing.T) {
	clock := newHandClock()
	n := felixtest.Start(t, felixtest.WithClock(clock))
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c := dialNode(t, n, client.WithLogger(log), client.WithTokenProvider(func(context.Context) (string, error) {
		return n.TokenFor("short-lived", clock.Now().Add(5*time.Second)), nil
	}))
	ctx := testContext(t)
	pub := c.Publisher("s")
	k := c.Cache("k")
	for token := range 3 {
		s := time.Now()
		for i := range 50 {
			if _, err := pub.Send(ctx, fmt.Append(nil, i)); err != nil { t.Fatal(err) }
		}
		fmt.Println(token, "send", time.Since(s)); s = time.Now()
		pub.Flush(ctx)
		fmt.Println(token, "flush", time.Since(s)); s = time.Now()
		for range 50 { k.Put(ctx, "x", nil) }
		fmt.Println(token, "put", time.Since(s)); s = time.Now()
		clock.advance(66*time.Second)
		time.Sleep(20*time.Millisecond)
	}
}
