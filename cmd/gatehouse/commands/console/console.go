// Package console is what the commands of the command line share: the process that they
// run in, the connection to the gateway, and how results are printed.
package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"

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
	// DatabaseMissing returns an error if the database of cfg is missing although it cannot be new; nil: not checked.
	DatabaseMissing func(cfg *configs.Config) (missing bool, err error)
	Demo            string // the directory in the home directory that is the demo's vault
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

// PrintList writes items as JSON, or as a table with the columns of header and a
// tab-separated row for each. Instead of an empty table it writes none.
func PrintList[T any](w io.Writer, asJSON bool, items []T, none, header string, row func(T) string) error {
	if asJSON {
		return PrintJSON(w, items)
	}
	if len(items) == 0 {
		_, err := fmt.Fprintln(w, none)
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, header)
	for _, item := range items {
		fmt.Fprintln(table, row(item))
	}
	return table.Flush()
}

// Cells joins the values of a table's row.
func Cells(values ...any) string {
	text := make([]string, len(values))
	for i, v := range values {
		text[i] = fmt.Sprint(v)
	}
	return strings.Join(text, "\t")
}

// Minute is how tables show a time.
const Minute = "2006-01-02 15:04"

// PrintLine writes v as JSON on one line.
func PrintLine(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }
