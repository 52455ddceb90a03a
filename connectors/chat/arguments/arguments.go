// Package arguments answers commands whose arguments are not accepted.
package arguments

import (
	"gatehouse/core/command"
	"gatehouse/core/texts"
)

// Wrong names the argument that is not accepted, and says how the command is written, with
// an example.
func Wrong(word, how string) (command.Outcome, error) {
	return command.Outcome{Text: Named(word) + " " + how}, nil
}

// Named is the sentence that names an argument which is not accepted.
func Named(word string) string {
	return texts.Text("wrong_argument", texts.With{"Word": texts.Excerpt(word)})
}
