package config

// A dialect is how one server names its settings, and what it makes of names
// that are not its own.
type dialect struct {
	fileEnv     string            // the variable that names the file
	defaultFile string            // read where no file is named; "" for none
	nests       bool              // keys with dots may be written as nested mappings
	inert       []inert           // accepted without effect
	refused     map[string]string // variables that must not be ignored, and why
	foreign     func(name string) bool
}

func brokerDialect() dialect {
	return dialect{
		fileEnv: fileEnv, defaultFile: DefaultFile,
		inert: inertSettings, refused: refusedVariables, foreign: isForeign,
	}
}
