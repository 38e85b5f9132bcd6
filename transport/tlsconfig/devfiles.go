package tlsconfig

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The files of a [DevCA]'s directory.
const (
	caFile     = "ca.pem"
	caKeyFile  = "ca.key"
	serverFile = "server.pem"
	serverKey  = "server.key"
)

// LoadDevCA opens the authority kept in dir, creating what is missing: the
// directory, ca.key, ca.pem, server.key and server.pem. Keys are readable by
// their owner only. A server certificate that is about to run out, lacks one
// of the hosts or is not of this authority is issued anew; so is the
// authority's own, for the same key, when it is about to run out. Several
// processes may load one directory at a time.
func LoadDevCA(dir string, o DevOptions) (*DevCA, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create directory of the dev CA: %w", err)
	}
	c := &DevCA{dir: dir, options: o}
	if err := c.loadAuthority(); err != nil {
		return nil, err
	}
	if err := c.loadServer(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *DevCA) path(name string) string { return filepath.Join(c.dir, name) }

// CAFile is the path of the authority's certificate; empty in memory.
func (c *DevCA) CAFile() string { return c.pathIfKept(caFile) }

// CertFile is the path of the server's certificate; empty in memory.
func (c *DevCA) CertFile() string { return c.pathIfKept(serverFile) }

// KeyFile is the path of the server's key; empty in memory.
func (c *DevCA) KeyFile() string { return c.pathIfKept(serverKey) }

func (c *DevCA) pathIfKept(name string) string {
	if c.dir == "" {
		return ""
	}
	return c.path(name)
}

func (c *DevCA) errNoKey() error {
	return fmt.Errorf("dev CA in %s has no %s to sign with: restore it, or delete the directory to start a new CA (clients then need the new %s)",
		c.dir, caKeyFile, caFile)
}

// loadAuthority reads the CA. The key comes first: from it the certificate
// can be made again, so it does not matter which of several processes, or of
// two starts with a crash in between, wrote which file.
func (c *DevCA) loadAuthority() error {
	ca, err := readCertificate(c.path(caFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if c.key, err = c.readKey(caKeyFile); errors.Is(err, fs.ErrNotExist) {
		if ca != nil {
			c.ca = ca
			return nil // it may still serve, see loadServer
		}
		c.key, err = c.createKey(caKeyFile)
	}
	if err != nil {
		return err
	}
	if ca != nil && !c.key.PublicKey.Equal(ca.PublicKey) {
		return fmt.Errorf("dev CA in %s: %s and %s do not belong together: delete the directory to start a new CA", c.dir, caFile, caKeyFile)
	}
	if ca == nil || expiring(ca, c.options.now()) {
		if ca, err = newAuthority(c.key, c.options.now()); err != nil {
			return err
		}
		c.ca = ca
		return writeAtomic(c.path(caFile), c.CAPEM(), 0o644)
	}
	c.ca = ca
	return nil
}

// loadServer reads the server's certificate or issues one. Like the CA's, its
// key is made once and kept, so that any certificate goes with it.
func (c *DevCA) loadServer() error {
	key, err := c.readKey(serverKey)
	if err == nil {
		// Anything wrong with the certificate is mended by a new one.
		if c.server, err = tls.LoadX509KeyPair(c.path(serverFile), c.path(serverKey)); err == nil && c.serves() {
			return nil
		}
	}
	if c.key == nil {
		return c.errNoKey()
	}
	if key == nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if key, err = c.createKey(serverKey); err != nil {
			return err
		}
	}
	if c.server, err = c.issueServer(key); err != nil {
		return err
	}
	return writeAtomic(c.path(serverFile), CertificatePEM(c.server), 0o644)
}

// createKey makes a key, or reads the one another process made first.
func (c *DevCA) createKey(name string) (*ecdsa.PrivateKey, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	text, err := keyPEM(key)
	if err != nil {
		return nil, err
	}
	err = createAtomic(c.path(name), text, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return c.readKey(name)
	}
	return key, err
}

func readCertificate(file string) (*x509.Certificate, error) {
	block, err := readPEM("certificate", file)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(block)
	if err != nil {
		return nil, fmt.Errorf("certificate file %s is damaged: %s: %w", file, mend, err)
	}
	return cert, nil
}

func (c *DevCA) readKey(name string) (*ecdsa.PrivateKey, error) {
	file := c.path(name)
	block, err := readPEM("key", file)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block)
	if err != nil {
		return nil, fmt.Errorf("key file %s is damaged: %s: %w", file, mend, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("key file %s holds a %T and not an ECDSA key: %s", file, parsed, mend)
	}
	return key, restrict(file)
}

// mend is what to do about a file that cannot be used.
const mend = "restore it, or delete the directory to start a new CA"

func readPEM(what, file string) ([]byte, error) {
	text, err := readFile(what, file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s file %s is not PEM: %s", what, file, mend)
	}
	return block.Bytes, nil
}

// restrict makes a key that others can read private again.
func restrict(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(file, 0o600); err != nil {
		return fmt.Errorf("key file %s can be read by others: %w", file, err)
	}
	return nil
}
