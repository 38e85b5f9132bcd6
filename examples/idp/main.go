// Command idp runs an identity provider for trying out how Felix knows people
// and programs: it gives a token to every client that shows its secret.
//
//	idp --addr 127.0.0.1:9999 alice:alices-secret bob:bobs-secret
//
// It is a toy. Yours is Keycloak, Dex, Okta, Entra or whatever your organisation
// has.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/felixlog/felix/felixtest/idp"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:9999", "`HOST:PORT` on loopback")
	flag.Parse()
	clients := make(map[string]string)
	for _, arg := range flag.Args() {
		name, secret, found := strings.Cut(arg, ":")
		if !found {
			fmt.Fprintf(os.Stderr, "idp: %q: want NAME:SECRET\n", arg)
			os.Exit(2)
		}
		clients[name] = secret
	}
	p, err := idp.New(idp.Options{Addr: *addr, Clients: clients})
	if err != nil {
		fmt.Fprintln(os.Stderr, "idp:", err)
		os.Exit(1)
	}
	fmt.Printf("identity provider ready: issuer %s, audience %s\n", p.Issuer(), p.Audience())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	p.Close()
}
