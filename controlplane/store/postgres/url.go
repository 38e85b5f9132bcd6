package postgres

import (
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// hidden stands where a password was.
const hidden = "xxxxx"

// secretKeys are the parameters of a URL that hold one.
var secretKeys = []string{"password", "sslpassword"}

// keyValue finds secrets in the other form of a connection string, which is
// "host=db password='a b'".
var keyValue = regexp.MustCompile(`(?i)\b(ssl)?password\s*=\s*('(\\.|[^'\\])*'?|(\\.|[^\s\\])*)`)

// Redact is a connection string for people: without its passwords, in userinfo
// or parameters (control plane 11). What cannot be parsed is not shown.
func Redact(connection string) string {
	if !strings.Contains(connection, "://") {
		return keyValue.ReplaceAllString(connection, "${1}password="+hidden)
	}
	u, err := url.Parse(connection)
	if err != nil {
		return "(a URL that cannot be parsed)"
	}
	if _, has := u.User.Password(); has {
		u.User = url.UserPassword(u.User.Username(), hidden)
	}
	query := u.Query()
	for key := range query {
		for _, secret := range secretKeys {
			if strings.EqualFold(key, secret) {
				query.Set(key, hidden)
			}
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// errURL is all that is said of a URL that cannot be used: the parser's own
// words quote it.
var errURL = errors.New("postgres: the URL cannot be used; it must have the form postgres://user:password@host:port/database, with special characters in user and password escaped")

// parse reads the URL and sets what the store needs of every connection.
func parse(o Options) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, errURL
	}
	config.MaxConns = int32(o.MaxConns)
	config.MinConns = 0
	config.PingTimeout = min(time.Second, o.AcquireTimeout)
	config.ConnConfig.ConnectTimeout = o.ConnectTimeout
	parameters(config.ConnConfig, o.CallTimeout)
	return config, nil
}

// parameters are told to the database with every connection, unless the URL
// says otherwise. What outlives a call is given up there too. Every join of the
// store leads from a few keys to their rows, and as long as a table has no
// statistics the planner would rather read it whole.
func parameters(config *pgx.ConnConfig, limit time.Duration) {
	millis := strconv.FormatInt(limit.Milliseconds(), 10)
	for name, value := range map[string]string{
		"application_name":                    "felix-controlplane",
		"statement_timeout":                   millis,
		"idle_in_transaction_session_timeout": millis,
		"timezone":                            "UTC",
		"enable_hashjoin":                     "off",
		"enable_mergejoin":                    "off",
		// Compiling a statement takes a hundred times as long as running any of
		// these, and is not kept.
		"jit": "off",
	} {
		if _, set := config.RuntimeParams[name]; !set {
			config.RuntimeParams[name] = value
		}
	}
}
