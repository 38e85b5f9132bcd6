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
	for i, arg := range flag.Args() {
		name, secret, _ := strings.Cut(arg, ":")
		if name == "" || secret == "" {
			// The argument may be a secret alone, so it is not repeated.
			fmt.Fprintf(os.Stderr, "idp: argument %d is not NAME:SECRET\n", i+1)
			os.Exit(2)
		}
		clients[name] = secret
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p, err := idp.New(idp.Options{Addr: *addr, Clients: clients})
	if err != nil {
		fmt.Fprintln(os.Stderr, "idp:", err)
		os.Exit(1)
	}
	fmt.Printf("identity provider ready: issuer %s, audience %s\n", p.Issuer(), p.Audience())
	<-ctx.Done()
	p.Close()
}
