// Package commands is the command line but for the commands that run the
// gateway: each reads its flags, makes its requests of the gateway, and prints
// the answers.
package commands

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"

	"gatehouse/configs"
)

// A Process is what a command may use of the world.
type Process struct {
	Context  context.Context
	Stdin    *os.File // answers; nil: none
	Stdout   io.Writer
	Stderr   io.Writer
	Terminal bool   // Stderr is one
	EnvFile  string // --env-file
	Version  string // of the program
	// Open returns the handler of the command line's requests on the files of a
	// gateway that does not run. end is called also after an error.
	Open func(ctx context.Context, cfg *configs.Config) (h http.Handler, end func() error, err error)
	Demo string // the directory in the home directory that is the demo's vault
}

// Errors that were printed already: a failure, and an invalid configuration.
var (
	ErrReported      = errors.New("failed")
	ErrReportedUsage = errors.New("bad configuration")
)

// PrintJSON writes v as indented JSON.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printLine writes v as JSON on one line.
func printLine(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }
