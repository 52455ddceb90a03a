package dispatch

import (
	"strings"

	"gatehouse/core"
	"gatehouse/core/orchestrator"
	"gatehouse/core/queue"
	"gatehouse/core/texts"
)

// What stands before the run's id in what the buttons under an answer carry.
const (
	againKey = "again:"
	fileKey  = "file:"
)

// AgainRun is the run whose message a button is to have answered once more;
// false for any other button.
func AgainRun(data string) (run string, ok bool) { return strings.CutPrefix(data, againKey) }

// FileRun is the run whose answer a button is to give as a file; false for any
// other button.
func FileRun(data string) (run string, ok bool) { return strings.CutPrefix(data, fileKey) }

// longAnswer is how many messages an answer takes from which on it can be had
// as a file.
const longAnswer = 3

// under are the buttons under an answer of n messages, in one row: the choice
// that the run ended with, else to have it answered once more; and the answer
// as a file where it is long.
func under(t *queue.Turn, res orchestrator.Result, n int) [][]core.Button {
	row := res.Buttons
	if len(row) == 0 {
		row = []core.Button{{Label: texts.Text("button_again"), Data: againKey + t.Run}}
	}
	if n >= longAnswer && res.Response != "" {
		row = append(row[:len(row):len(row)], core.Button{Label: texts.Text("button_file"), Data: fileKey + t.Run})
	}
	return [][]core.Button{row}
}
