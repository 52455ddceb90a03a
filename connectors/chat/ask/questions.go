package ask

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/texts"
)

// A Question is one of up to four that a model asks a user at once. Its texts
// are the model's.
type Question struct {
	Question    string   `json:"question"`
	Header      string   `json:"header"`
	MultiSelect bool     `json:"multiSelect"`
	Options     []Option `json:"options"`
}

// An Option is one answer that a Question offers.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// Questions returns the questions in the payload of an ask.
func Questions(a ask.Ask) []Question {
	var p struct {
		Questions []Question `json:"questions"`
	}
	_ = json.Unmarshal([]byte(a.Payload), &p)
	return p.Questions
}

// Labels returns the labels of the picked options, as the model receives them.
func (q Question) Labels(picked []int) string {
	out := make([]string, len(picked))
	for n, i := range picked {
		out[n] = q.Options[i].Label
	}
	return strings.Join(out, ", ")
}

// Options of the buttons of a question. The index of an answer is its own option.
const (
	OptionWrite = "write" // opens a form, on platforms that have forms
	OptionDone  = "done"  // ends a choice of several, where each press changes one
)

// maxQuestions bounds the bytes of questions and answers in a message. Together
// with the text around them they fit into one message on every platform.
const maxQuestions = 1700

// QuestionsPart returns the message that shows the questions of an ask. A single
// question has its answers as buttons; the last button opens a form.
func QuestionsPart(a ask.Ask) core.Part { return questionsPart(a, Questions(a)) }

func questionsPart(a ask.Ask, qs []Question) core.Part {
	text := questionsText(qs)
	form := core.Button{Label: texts.Text("button_answer"), Data: a.Data(OptionWrite), Form: true}
	if len(qs) != 1 {
		return core.Part{Text: text + "\n" + texts.Text("question_words"), Buttons: [][]core.Button{{form}}}
	}
	part := core.Part{Text: text + "\n" + texts.Text("question_one"), Buttons: answerButtons(a, qs[0])}
	if qs[0].MultiSelect {
		part.Text = text + "\n" + texts.Text("question_several")
		part.Buttons = append(part.Buttons, []core.Button{{Label: texts.Text("button_done"), Data: a.Data(OptionDone), Pick: core.PickDone}})
	}
	form.Label = texts.Text("button_other")
	part.Buttons = append(part.Buttons, []core.Button{form})
	return part
}

// questionsText returns the questions with their answers, a line each.
func questionsText(qs []Question) string {
	var b strings.Builder
	room := maxQuestions / max(1, len(qs))
	for i, q := range qs {
		if len(qs) > 1 {
			fmt.Fprintf(&b, "%d. ", i+1)
		}
		b.WriteString(core.CutRunes(q.Question, room/2) + "\n")
		for n, o := range q.Options {
			line := o.Label
			if o.Description != "" {
				line += ": " + o.Description
			}
			mark := "- "
			if len(qs) == 1 {
				mark = fmt.Sprintf("%d) ", n+1)
			}
			b.WriteString(mark + core.CutRunes(line, room/8) + "\n")
		}
	}
	return b.String()
}

// answerButtons returns a button for each answer of q, a row each.
func answerButtons(a ask.Ask, q Question) (rows [][]core.Button) {
	picked := Picked(a)
	for i, o := range q.Options {
		button := core.Button{Label: core.CutRunes(o.Label, maxButton), Data: a.Data(strconv.Itoa(i))}
		if q.MultiSelect {
			button.Pick, button.Picked = core.PickEntry, slices.Contains(picked, i)
		}
		rows = append(rows, []core.Button{button})
	}
	return rows
}

// Pressed returns the indexes of the answers that a press of an option selects:
// one, all that a menu has selected, or with OptionDone those that earlier
// presses have selected.
func Pressed(cb *core.Callback, a ask.Ask, option string) (out []int, err error) {
	if option == OptionDone {
		return Picked(a), nil
	}
	all := []string{option}
	if cb.Picked != nil {
		all = nil
		for _, data := range cb.Picked {
			id, o, ok := ask.SplitData(data)
			if !ok || id != a.ID {
				return nil, texts.Error(core.Invalid, "menu_gone")
			}
			all = append(all, o)
		}
	}
	for _, o := range all {
		i, err := strconv.Atoi(o)
		if err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Picked returns the indexes of the answers that presses have selected so far.
func Picked(a ask.Ask) []int {
	var p struct {
		Picked []int `json:"picked"`
	}
	_ = json.Unmarshal([]byte(a.Payload), &p)
	return p.Picked
}

// toggle returns the payload of an ask in which one answer is selected that was
// not, or the reverse.
func toggle(a ask.Ask, answer int) (payload string, err error) {
	picked := Picked(a)
	if i := slices.Index(picked, answer); i >= 0 {
		picked = slices.Delete(picked, i, i+1)
	} else {
		picked = append(picked, answer)
	}
	slices.Sort(picked)
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(a.Payload), &all); err != nil {
		return "", err
	}
	if all["picked"], err = json.Marshal(picked); err != nil {
		return "", err
	}
	b, err := json.Marshal(all)
	return string(b), err
}

// byNumber returns the labels of the answers that text names by their numbers
// ("2", "1, 3"), where there is a single question. Any other text is returned
// as it is, and so is text that equals a label.
func byNumber(qs []Question, text string) string {
	if len(qs) != 1 {
		return text
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' || unicode.IsSpace(r) })
	picked := []int{}
	for _, w := range words {
		n, err := strconv.Atoi(strings.TrimRight(w, ".)"))
		if err != nil || n < 1 || n > len(qs[0].Options) {
			return text
		}
		picked = append(picked, n-1)
	}
	isText := func(o Option) bool { return strings.TrimSpace(o.Label) == strings.TrimSpace(text) }
	slices.Sort(picked)
	if picked = slices.Compact(picked); len(picked) == 0 || len(picked) > 1 && !qs[0].MultiSelect || slices.ContainsFunc(qs[0].Options, isText) {
		return text
	}
	return qs[0].Labels(picked)
}
