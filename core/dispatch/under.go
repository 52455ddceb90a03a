package dispatch

import (
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/orchestrator"
	"gatehouse/core/queue"
	"gatehouse/core/texts"
)

// longAnswer is the number of messages from which an answer is offered as a file.
const longAnswer = 3

// under returns one row of buttons under an answer of n messages: the choice that
// the run ended with, or else to answer again; and the answer as a file if it is
// long.
func under(t *queue.Turn, res orchestrator.Result, n int) [][]core.Button {
	row := res.Buttons
	if len(row) == 0 {
		row = []core.Button{{Label: texts.Text("button_again"), Data: command.AgainData(t.Run)}}
	}
	if n >= longAnswer && res.Response != "" {
		row = append(row[:len(row):len(row)], core.Button{Label: texts.Text("button_file"), Data: command.FileData(t.Run)})
	}
	return [][]core.Button{row}
}
