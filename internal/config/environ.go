package config

import (
	"regexp"
	"strings"

	"github.com/felixlog/felix/internal/config/suggest"
)

// envPrefix begins the variables that are ours.
const envPrefix = "FELIX_"

// splitEnviron drops variables that are set to nothing.
func splitEnviron(environ []string) map[string]string {
	set := make(map[string]string)
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); value != "" {
			set[name] = value
		}
	}
	return set
}

// environ applies the variables of the settings and judges the other FELIX_
// variables.
func (l *loader) environ(environ map[string]string) {
	known := map[string]bool{l.fileEnv: true}
	for i := range l.settings {
		s := &l.settings[i]
		given := ""
		for _, name := range append([]string{s.Env}, s.Aliases...) {
			known[name] = true
			text, set := environ[name]
			switch {
			case !set:
			case given == "":
				given = name
				l.set(s, text, name)
			default:
				l.warn("%s has no effect: %s is set and comes first", name, given)
			}
		}
	}
	for _, name := range sortedKeys(environ) {
		if known[name] || !strings.HasPrefix(name, envPrefix) {
			continue
		}
		l.otherVariable(name, environ[name], known)
	}
}

func (l *loader) otherVariable(name, value string, known map[string]bool) {
	if why, refused := l.refused[name]; refused {
		l.fault(&UnsupportedError{Name: name, Why: why})
		return
	}
	if old := l.inertByEnv(name); old != nil {
		l.warn("%s has no effect: %s", name, old.why)
		return
	}
	if l.foreign(name) || isServiceLink(name, value) {
		return
	}
	short := make([]string, 0, len(known))
	for _, candidate := range sortedKeys(known) {
		if rest, ours := strings.CutPrefix(candidate, envPrefix); ours {
			short = append(short, rest)
		}
	}
	like := suggest.Closest(strings.TrimPrefix(name, envPrefix), short)
	if like != "" {
		like = envPrefix + like
	}
	l.fault(&UnknownError{Name: name, Source: "environment", Like: like})
}

// Kubernetes sets variables in every container for each service of the
// namespace; for a service named felix or felix-something they begin with our
// prefix. A bare ..._PORT is one of them only with a value like
// udp://10.0.0.1:5000.
var (
	serviceLink = regexp.MustCompile(`^FELIX_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)$`)
	servicePort = regexp.MustCompile(`^FELIX_([A-Z0-9_]+_)?PORT$`)
)

// isServiceLink says whether a variable was put there by Kubernetes.
func isServiceLink(name, value string) bool {
	return serviceLink.MatchString(name) || servicePort.MatchString(name) && strings.Contains(value, "://")
}
