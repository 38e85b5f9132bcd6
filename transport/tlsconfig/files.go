package tlsconfig

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// readKeyPair reads a certificate chain and its key.
func readKeyPair(certFile, keyFile string) (*tls.Certificate, error) {
	certPEM, err := readFile("certificate", certFile)
	if err != nil {
		return nil, err
	}
	keyPEM, err := readFile("key", keyFile)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate %s and key %s do not make a pair (PEM, of one key): %w", certFile, keyFile, err)
	}
	return &cert, nil
}

// readPool reads certificate authorities from a file or from text; nil if
// neither is given.
func readPool(what, file string, text []byte) (*x509.CertPool, error) {
	source := what + " text"
	if file != "" {
		read, err := readFile(what, file)
		if err != nil {
			return nil, err
		}
		text, source = read, fmt.Sprintf("%s file %s", what, file)
	}
	if len(text) == 0 && file == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate: it must contain at least one PEM block of type CERTIFICATE", source)
	}
	return pool, nil
}

// readFile reads a file or says what is wrong with it.
func readFile(what, file string) ([]byte, error) {
	b, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s file %s does not exist: create it or correct the path: %w", what, file, err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s file %s may not be read by this user: change its owner or mode: %w", what, file, err)
	case err != nil:
		return nil, fmt.Errorf("read %s file: %w", what, err)
	}
	return b, nil
}
