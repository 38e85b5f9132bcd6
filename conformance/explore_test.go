package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
"sync"
"os/exec"
"strings"
	"encoding/json"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/conformance/recorder"
)

const inMemFeatures = 0x0000_0004|0x20|0x200|0x400|0x800|0x1000|0x2000|0x4000|0x40000|0x200000

type lab struct { *driver; s *recorder.Server; sc *recorder.Script; ca string; t *testing.T }

func newLab(t *testing.T, sc *recorder.Script) *lab {
	s, err := recorder.Listen(recorder.Options{Script: sc})
	if err != nil { t.Fatal(err) }
	t.Cleanup(func(){ s.Close() })
	ca := filepath.Join(t.TempDir(), "ca.pem")
	os.WriteFile(ca, s.PKI().CAPEM, 0o644)
	return &lab{startDriver(t), s, sc, ca, t}
}
func (l *lab) dump() {
	for _, e := range l.s.Log() { 
		if e.Frame.Type()=="auth_ok" || (e.Kind=="fin" && !e.Uni) {continue}
		if (e.Frame.Type()=="auth" || e.Frame.Type()=="ok" && e.Kind=="out") && e.Stream>0 {continue}
		fmt.Println("   ", e) }
}
func js(v any) string { b,_ := json.Marshal(v); return string(b) }
func timed(f func() error) string { t0:=time.Now(); err := f(); return fmt.Sprintf("[%.2fs] %v", time.Since(t0).Seconds(), err) }

func (l *lab) try(m string, a []any, kw map[string]any) {
	var v any
	fmt.Println("  ", m, kw, timed(func() error { return l.call(&v, "c", m, a, kw) }), js(v))
}
var pub = []any{"t1", "default", "s", pyBytes("hello")}


func authOK(flags, feats, hi uint32, extra string) func(s *recorder.Stream, f raw.Frame) {
	return func(s *recorder.Stream, f raw.Frame) {
		h := ""
		if hi != 0 { h = fmt.Sprintf(`,"server_features_hi":%d`, hi); feats |= 1<<31 }
		s.Send(raw.JSON(fmt.Sprintf(`{"type":"auth_ok","server_flags":%d,"server_features":%d%s%s}`, flags, feats, h, extra)))
	}
}


func s_log(l *lab) (out []recorder.Entry) { for _, e := range l.s.Log() { if e.Kind == "connected" || e.Kind == "closed" { out = append(out, e) } }; return }


func ev(flags uint16, base uint64, recs ...string) raw.Frame {
	e := raw.Events{Flags: flags, BaseOffset: base}
	for _, r := range recs { e.Records = append(e.Records, []byte(r)) }
	return e.Frame()
}
func (l *lab) next(sub string, n int, sec float64) {
	for i := 0; i < n; i++ {
		t0 := time.Now()
		e, err := l.nextEvent(sub, sec)
		var closed bool
		l.attribute(&closed, sub, "closed")
		o := "None"
		if e != nil { o = fmt.Sprintf("%q", e.Payload.Bytes); if e.Offset != nil { o += fmt.Sprint(" @", *e.Offset) }; o += fmt.Sprint(" skipped ", e.SkippedBefore) }
		fmt.Printf("   next [%.2fs] %s %v closed=%v\n", time.Since(t0).Seconds(), o, err, closed)
	}
}
const off = raw.FlagEventBatchShared|raw.FlagEventOffsets

// subs are answered from a list: one function per subscribe in turn
func subLab(t *testing.T, answers ...func(s *recorder.Stream, id uint64) ) *lab {
	n := 0
	var mu sync.Mutex
	sc := &recorder.Script{AuthOK: authOK(0x7fff, inMemFeatures, 0, "")}
	sc.Handle = func(s *recorder.Stream, f raw.Frame) bool {
		if f.Type() != "subscribe" { return false }
		mu.Lock()
		a := answers[min(n, len(answers)-1)]
		n++
		mu.Unlock()
		a(s, sc.NextID())
		return true
	}
	l := newLab(t, sc)
	fmt.Println("==", t.Name(), l.connect("c", l.s.Addr(), l.ca, nil))
	return l
}
func subscribed(extra string, then func(e *recorder.Stream)) func(s *recorder.Stream, id uint64) {
	return func(s *recorder.Stream, id uint64) {
		e, err := s.Conn.OpenEvents(id)
		if err != nil { fmt.Println("open", err); return }
		s.Send(raw.JSON(fmt.Sprintf(`{"type":"subscribed","subscription_id":%d%s}`, id, extra)))
		s.FIN()
		if then != nil { go then(e) }
	}
}
func answer(m string) func(s *recorder.Stream, id uint64) { return func(s *recorder.Stream, id uint64) { s.Send(raw.JSON(m)); s.FIN() } }
func (l *lab) sub(kw map[string]any) { fmt.Println(" subscribe", kw, timed(func() error { return l.keep("sub", "c", "subscribe", []any{"t1","default","s"}, kw)})) }
func (l *lab) subsLog() { for _, e := range l.s.Log() { if e.Frame.Type() == "subscribe" || e.Kind == "connected" || e.Kind == "closed" { fmt.Println("    ", e) } } }



func TestXOver(t *testing.T) {
	for _, how := range []string{"fin", "stop", "fin+stop", "reset+stop"} {
		sc := &recorder.Script{AuthOK: authOK(0x7fff, inMemFeatures, 0, "")}
		sc.Handle = func(s *recorder.Stream, f raw.Frame) bool {
			if len(f.Payload) < 1000 { return false }
			if strings.Contains(how, "fin") { s.FIN() }
			if strings.Contains(how, "reset") { s.Reset(0) }
			if strings.Contains(how, "stop") { s.StopReading(0) }
			return true
		}
		l := newLab(t, sc)
		fmt.Println("==", how, l.connect("c", l.s.Addr(), l.ca, nil))
		var v any
		fmt.Println("publish", timed(func() error { return l.call(&v, "c", "publish", []any{"t1","default","s",pyBytes(strings.Repeat("x", 2000))}, nil) }))
		fmt.Println("publish small", timed(func() error { return l.call(&v, "c", "publish", pub, nil) }))
		fmt.Println("cache_put", timed(func() error { return l.call(&v, "c", "cache_put", []any{"t1","default","c","k", pyBytes(strings.Repeat("x", 2000))}, nil) }))
		fmt.Println("cache_put small", timed(func() error { return l.call(&v, "c", "cache_put", []any{"t1","default","c","k", pyBytes("x")}, nil) }))
	}
}
func TestXExit(t *testing.T) {
	l := newLab(t, &recorder.Script{AuthOK: authOK(0x7fff, inMemFeatures, 0, "")})
	for _, end := range []string{"del c", "pass", "import os; os._exit(0)", "c.__exit__()"} {
		code := `
import felix, time, gc
c = felix.Client("` + l.s.Addr() + `", tenant_id="t1", token="t", ca_file="` + l.ca + `")
c.publish("t1","default","s",b"x")
` + end + `
gc.collect()
time.sleep(1)
`
		n := len(l.s.Conns())
		out, err := exec.Command("/tmp/fx/venv/bin/python", "-c", code).CombinedOutput()
		fmt.Println(end, string(out), err)
		time.Sleep(300*time.Millisecond)
		for _, e := range l.s.Log() { if e.Conn > n && (e.Kind == "closed" || e.Kind == "connected") { fmt.Println(e) } }
	}
	time.Sleep(7*time.Second)
	for _, e := range l.s.Log() { if e.Kind == "closed" { fmt.Println(e) } }
	// token provider
	code := `
import felix, asyncio
n = 0
def tok():
    global n
    n += 1
    return "tok%d" % n
c = felix.Client("` + l.s.Addr() + `", tenant_id="t1", token_provider=tok, ca_file="` + l.ca + `")
print(c.publish("t1","default","s",b"x"), n)
async def main():
    a = await felix.AsyncClient.connect("` + l.s.Addr() + `", tenant_id="t1", token="t", ca_file="` + l.ca + `")
    async with a:
        print(await a.publish("t1","default","s",b"x"))
        s = await a.subscribe("t1","default","s")
        print(await s.next_event(timeout=0.1), await s.closed)
        await s.close()
        print(await s.closed)
        print(await a.endpoints())
asyncio.run(main())
`
	out, err := exec.Command("/tmp/fx/venv/bin/python", "-c", code).CombinedOutput()
	fmt.Println(string(out), err)
	toks := map[string]int{}
	for _, e := range l.s.Log() { if e.Frame.Type() == "auth" { toks[e.Frame.String("token")]++ } }
	fmt.Println(toks)
}
func TestXNoneStall(t *testing.T) {
	block := make(chan struct{})
	l := newLab(t, &recorder.Script{AuthOK: authOK(0x7fff, inMemFeatures, 0, ""), Handle: func(s *recorder.Stream, f raw.Frame) bool {
		if f.Flags & 1 == 0 { return false }
		<-block
		return true
	}})
	fmt.Println(l.connect("c", l.s.Addr(), l.ca, nil))
	big := strings.Repeat("x", 256<<10)
	for i := range 40 {
		var v any
		s := timed(func() error { return l.call(&v, "c", "publish", []any{"t1","default","s",pyBytes(big)}, map[string]any{"ack":"none"}) })
		fmt.Println(i, s)
		if !strings.HasPrefix(s, "[0.") { break }
	}
	close(block)
}
