package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// A build says which felix this is.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Protocol is the version of the client protocol spoken.
	Protocol string `json:"protocol"`
}

// thisBuild reads what the Go tool recorded in the binary.
func thisBuild() build {
	b := build{
		Version: "devel", Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Protocol: "felix/1",
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (a *App) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		GroupID: groupSetUp,
		Short:   "Print the version of felix",
		Long:    `Print the version of this binary, the commit and the Go release it was built from, and the version of the client protocol it speaks.`,
		Example: `  felix version
  felix version --json`,
		Args: positional(0, 0),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if a.flags.json {
				return printJSON(a.Stdout, b)
			}
			fmt.Fprintf(a.Stdout, "felix %s (%s, %s, protocol %s)\n", b.Version, b.Go, b.Platform, b.Protocol)
			if b.Commit != "" {
				changed := ""
				if b.Modified {
					changed = " with changes"
				}
				fmt.Fprintf(a.Stdout, "commit %s%s\n", b.Commit, changed)
			}
			return nil
		},
	}
}
