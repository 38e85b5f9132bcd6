package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// maxTokenBytes bounds what is read as a token or another secret.
const maxTokenBytes = 64 << 10

// maxAuthorityBytes bounds a file of certificates.
const maxAuthorityBytes = 1 << 20

// readSmall reads a file of at most most bytes, and no more of a longer one.
func readSmall(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(f, name, most)
}

func readBounded(from io.Reader, name string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return data, nil
}

// readSecret reads a token or another secret without the blanks around it. Its
// errors never say what is in the file.
func readSecret(name, what string) (string, error) {
	data, err := readSmall(name, maxTokenBytes)
	if err != nil {
		return "", usageError("read %s: %w", what, err)
	}
	return notEmpty(data, name, what)
}

// readSecretOrStdin is readSecret, where - stands for standard input.
func (a *App) readSecretOrStdin(file, what string) (string, error) {
	if file != "-" {
		return readSecret(a.abs(file), what)
	}
	data, err := readBounded(a.Stdin, "standard input", maxTokenBytes)
	if err != nil {
		return "", usageError("read %s: %w", what, err)
	}
	return notEmpty(data, "standard input", what)
}

func notEmpty(data []byte, name, what string) (string, error) {
	secret := strings.TrimSpace(string(data))
	if secret == "" {
		return "", usageError("read %s: %s is empty", what, name)
	}
	return secret, nil
}
