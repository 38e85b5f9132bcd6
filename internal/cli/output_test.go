package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/felixlog/felix/client"
)

func TestRawForATerminal(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"plain", "plain"},
		{"héllo 日本 🙂", "héllo 日本 🙂"},
		{"tab\tstays", "tab\tstays"},
		{"a\nb\rc", `a\nb\rc`},
		{"\x1b[31mred\x07", `\x1b[31mred\x07`},
		{"\x00\x7f", `\x00\x7f`},
		{"\xff\xfe", `\xff\xfe`},
		{"\u202egnp.exe", `\u202egnp.exe`}, // right-to-left override
		{"\u009b31m", `\u009b31m`},         // an escape sequence in one character
		{"\U000e0001", `\U000e0001`},
		{"\ufffd", "\ufffd"}, // the character itself, not a wrong byte
	} {
		if got := string(appendRaw(nil, []byte(tc.in), true)); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.in, got, tc.want)
		}
	}
}

// No payload steers a terminal, every payload passes a pipe as it is.
func TestRawIsSafeOrExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) })).Draw(t, "payload")
		if piped := appendRaw(nil, payload, false); !bytes.Equal(piped, payload) {
			t.Fatalf("a pipe got %q", piped)
		}
		shown := appendRaw(nil, payload, true)
		if !utf8.Valid(shown) {
			t.Fatalf("a terminal got invalid UTF-8: %q", shown)
		}
		for _, r := range string(shown) {
			if r != '\t' && !unicode.IsPrint(r) {
				t.Fatalf("a terminal got %q of %q", r, payload)
			}
		}
	})
}

func TestEventLines(t *testing.T) {
	held := client.Event{Payload: []byte("hi"), Offset: 42, HasOffset: true, Shard: 3}
	inMemory := client.Event{Payload: []byte("hi")}
	binary := client.Event{Payload: []byte{0xff, 0x00}, Offset: 7, HasOffset: true, Gap: 2, SkippedBefore: 1}
	for _, tc := range []struct {
		name, format string
		tty          bool
		event        client.Event
		want         string
	}{
		{"raw", "raw", false, held, "hi\n"},
		{"raw bytes into a pipe", "raw", false, binary, "\xff\x00\n"},
		{"raw bytes on a terminal", "raw", true, binary, `\xff\x00` + "\n"},
		{"empty", "raw", false, client.Event{}, "\n"},
		{"offsets", "offsets", false, held, "3:42\thi\n"},
		{"offsets in memory", "offsets", false, inMemory, "0:-\thi\n"},
		{"json", "json", false, held, `{"shard":3,"offset":42,"payload":"hi"}` + "\n"},
		{"json in memory", "json", false, inMemory, `{"shard":0,"payload":"hi"}` + "\n"},
		{"json bytes", "json", true, binary, `{"shard":0,"offset":7,"gap":2,"skipped_before":1,"payload_base64":"/wA="}` + "\n"},
		{"json does not mangle", "json", false, client.Event{Payload: []byte(`<a href="x">&</a>`)}, `{"shard":0,"payload":"<a href=\"x\">&</a>"}` + "\n"},
	} {
		printer := eventPrinter{format: tc.format, tty: tc.tty}
		if got := string(printer.line(&tc.event)); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// Whatever is published comes back from a line of JSON.
func TestJSONKeepsPayloads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.SliceOf(rapid.Byte()).Draw(t, "payload")
		printer := eventPrinter{format: "json"}
		line := printer.line(&client.Event{Payload: payload})
		if bytes.Count(line, []byte{'\n'}) != 1 {
			t.Fatalf("not one line: %q", line)
		}
		var shown struct {
			Payload       *string
			PayloadBase64 *string `json:"payload_base64"`
		}
		if err := json.Unmarshal(line, &shown); err != nil {
			t.Fatal(err)
		}
		if (shown.Payload == nil) == (shown.PayloadBase64 == nil) {
			t.Fatalf("want one of payload and payload_base64: %s", line)
		}
		var got []byte
		if shown.Payload != nil {
			got = []byte(*shown.Payload)
		} else {
			decoded, err := base64.StdEncoding.DecodeString(*shown.PayloadBase64)
			if err != nil {
				t.Fatal(err)
			}
			got = decoded
		}
		if !bytes.Equal(got, payload) {
			t.Fatalf("payload %q came back as %q", payload, got)
		}
	})
}

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		count(0):                          "0",
		count(999):                        "999",
		count(1000):                       "1,000",
		count(1234567):                    "1,234,567",
		plural(1, "message"):              "1 message",
		plural(1707, "message"):           "1,707 messages",
		size(0):                           "0 bytes",
		size(1):                           "1 byte",
		size(1023):                        "1,023 bytes",
		size(1024):                        "1.0 KiB",
		size(5 << 20):                     "5.0 MiB",
		size(1 << 50):                     "1024.0 TiB",
		rate(5<<20, "byte"):               "5.0 MiB/s",
		rate(2.54, "message"):             "2.5 messages/s",
		rate(1234.5, "message"):           "1,235 messages/s",
		elapsed(1500 * time.Nanosecond):   "2µs",
		elapsed(123456 * time.Nanosecond): "123µs",
		elapsed(12345 * time.Microsecond): "12.35ms",
		elapsed(1234 * time.Millisecond):  "1.23s",
		elapsed(61500 * time.Millisecond): "1m2s",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if perSecond(10, 0) != 0 || perSecond(10, 2*time.Second) != 5 {
		t.Error("perSecond is wrong")
	}
}

func TestErrorsAreTold(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		exit int
		text string
		json string
	}{
		{
			"usage", usageError("no %s", "stream").hinting("try --help"), ExitUsage,
			"felix: no stream\n  try --help\n", `{"error":"no stream","hint":"try --help","exit":2}`,
		},
		{
			"anything", errPlain("it broke"), ExitOther,
			"felix: it broke\n", `{"error":"it broke","exit":1}`,
		},
		{
			"several lines", errPlain("one\ntwo"), ExitOther,
			"felix: one\n  two\n", `{"error":"one\ntwo","exit":1}`,
		},
		{
			"refused", &client.Error{Op: "publish", Code: client.CodeForbidden, Retry: client.RetryNever, Message: "not yours"}, ExitRefused,
			"felix: publish: not yours (forbidden)\n", `{"error":"publish: not yours (forbidden)","code":"forbidden","retry":"fatal","exit":4}`,
		},
		{
			"unreachable", &client.UnreachableError{Endpoints: []string{"127.0.0.1:1"}, Err: errPlain("silence")}, ExitUnreachable,
			"felix: no broker reachable at 127.0.0.1:1: silence\n", `{"error":"no broker reachable at 127.0.0.1:1: silence","exit":3}`,
		},
		{
			"a bad name", &client.NameError{Kind: "stream", Name: "a/b", Err: errPlain("holds a slash")}, ExitUsage,
			"felix: invalid stream \"a/b\": holds a slash\n", `{"error":"invalid stream \"a/b\": holds a slash","exit":2}`,
		},
		{
			"a hint of ours on a refusal", (&Error{Err: &client.Error{Code: client.CodeOverloaded, Retry: client.RetryLater}}).hinting("3 sent"), ExitRefused,
			"felix: overloaded (overloaded)\n  3 sent\n", `{"error":"overloaded (overloaded)","hint":"3 sent","code":"overloaded","retry":"retry_after","exit":4}`,
		},
		{"interrupted", errInterrupted, ExitOther, "felix: interrupted\n", `{"error":"interrupted","exit":1}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ta := newTestApp(t, nil)
			if code := ta.report(tc.err, false); code != tc.exit || ta.errs.String() != tc.text {
				t.Errorf("exit %d, text %q; want %d, %q", code, &ta.errs, tc.exit, tc.text)
			}
			ta.errs.Reset()
			if code := ta.report(tc.err, true); code != tc.exit || ta.errs.String() != tc.json+"\n" {
				t.Errorf("exit %d, JSON %s; want %d, %s", code, &ta.errs, tc.exit, tc.json)
			}
		})
	}
	missing := explain(&client.Error{Op: "subscribe", Code: client.CodeNotFound, Retry: client.RetryLater})
	if missing.Exit != ExitNotFound || !strings.Contains(missing.Hint, "first use") {
		t.Errorf("a missing stream: %+v", missing)
	}
}

type errPlain string

func (e errPlain) Error() string { return string(e) }

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{
		"/home/u/token":  "/home/u/token",
		"/home/my token": "'/home/my token'",
		"it's":           `'it'\''s'`,
		"":               "''",
		"$(rm -r)":       "'$(rm -r)'",
	} {
		if got := shellQuote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
