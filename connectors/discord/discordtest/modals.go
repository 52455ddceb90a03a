package discordtest

import (
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"gatehouse/core"
)

const labelType = 18

// A Modal is a dialog that a bot opened ([interactions] "Modal").
type Modal struct {
	CustomID string   `json:"custom_id"`
	Title    string   `json:"title"`
	Inputs   []string `json:"inputs"` // custom ids of its inputs
	Fields   []Field  `json:"fields"` // the same, as users see them

	rows []bool // by field: in an action row, not in a label
}

// A Field is one text input of a Modal ([components] "Text Input", "Label").
type Field struct {
	CustomID    string `json:"custom_id"`
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
	Placeholder string `json:"placeholder,omitempty"`
	Value       string `json:"value,omitempty"` // what is in it at first
	Lines       bool   `json:"lines,omitempty"` // takes several
	Required    bool   `json:"required,omitempty"`
	Least       int    `json:"min_length,omitempty"`
	Most        int    `json:"max_length"`
}

const maxInput = 4000 // [components] "Text Input"

// readModal: 1 to 5 labels, or action rows, each with one text input. Other
// components that a label may hold are not simulated.
func readModal(f *form) (*Modal, *apiError) {
	m := &Modal{CustomID: f.text("custom_id"), Title: f.text("title")}
	if n := utf8.RuneCountInString(m.CustomID); n < 1 || n > 100 {
		f.badLength("custom_id", 1, 100)
	}
	if n := utf8.RuneCountInString(m.Title); n < 1 || n > 45 { // [interactions] "Modal"
		f.badLength("title", 1, 45)
	}
	list := f.array("components")
	if len(list) < 1 || len(list) > 5 {
		f.badLength("components", 1, 5)
	}
	for i, raw := range list {
		at := "components." + strconv.Itoa(i)
		c := &form{}
		json.Unmarshal(raw, &c.fields)
		switch c.integer("type") {
		case labelType:
			f.label(m, at, c)
		case actionRow:
			f.inputRow(m, at, c)
		default:
			f.union(at, "1, 10, 18")
		}
	}
	if f.errs == nil {
		return m, nil
	}
	outer := &form{}
	outer.adopt("data", f)
	return nil, outer.check()
}

// label is [components] "Label": at most 45 characters above one component,
// with a description of at most 100.
func (f *form) label(m *Modal, at string, c *form) {
	text, about := c.text("label"), c.text("description")
	if n := utf8.RuneCountInString(text); n < 1 || n > 45 {
		f.badLength(at+".label", 1, 45)
	}
	f.limit(at+".description", about, 100)
	in := c.object("component")
	if in == nil {
		f.required(at + ".component")
		return
	}
	if in.integer("type") != textInput {
		f.union(at+".component", "3, 4, 5, 6, 7, 8, 19, 21, 22, 23")
		return
	}
	if in.has("label") { // it is on the label; the code is ours
		f.wrong(at+".component.label", "COMPONENT_LABEL_NOT_ALLOWED", "A text input in a label has no label of its own.")
	}
	f.input(m, at+".component", in, Field{Label: text, Description: about}, false)
}

// inputRow is the form before labels, which the platform still takes.
func (f *form) inputRow(m *Modal, at string, c *form) {
	list := c.array("components")
	if len(list) != 1 {
		f.badLength(at+".components", 1, 1)
		return
	}
	in := &form{}
	json.Unmarshal(list[0], &in.fields)
	if in.integer("type") != textInput {
		f.union(at+".components.0", "4")
		return
	}
	text := in.text("label")
	if n := utf8.RuneCountInString(text); n < 1 || n > 45 {
		f.badLength(at+".components.0.label", 1, 45)
	}
	f.input(m, at+".components.0", in, Field{Label: text}, true)
}

// input is [components] "Text Input".
func (f *form) input(m *Modal, at string, in *form, field Field, row bool) {
	f.customID(at, in)
	field.CustomID, field.Placeholder, field.Value = in.text("custom_id"), in.text("placeholder"), in.text("value")
	if slices.Contains(m.Inputs, field.CustomID) {
		f.wrong(at+".custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
	}
	switch style := in.integer("style"); {
	case !in.has("style"):
		f.required(at + ".style")
	case style != 1 && style != 2:
		f.choices(at+".style", "1, 2")
	default:
		field.Lines = style == 2
	}
	field.Required, field.Least, field.Most = in.boolean("required", true), in.bound("min_length", 0), in.bound("max_length", maxInput)
	f.between(at+".min_length", field.Least, 0, maxInput)
	f.between(at+".max_length", field.Most, 1, maxInput)
	f.limit(at+".placeholder", field.Placeholder, 100)
	f.limit(at+".value", field.Value, maxInput)
	m.Inputs, m.Fields, m.rows = append(m.Inputs, field.CustomID), append(m.Fields, field), append(m.rows, row)
}

// fits reports whether the app lets a user send value.
func (f Field) fits(value string) bool {
	n := utf8.RuneCountInString(value)
	return n <= f.Most && (n >= f.Least || n == 0 && !f.Required) && (n > 0 || !f.Required)
}

// Submit sends the dialog that an interaction opened, with values by custom
// id; a field that has none keeps what is in it. NotFound: the interaction
// opened no dialog of this person. Invalid: the app does not send that.
func (u *User) Submit(id ID, values map[string]string) (ID, error) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.interactions[id]
	if from == nil || from.modal == nil || from.user != u.id {
		return 0, core.Errorf(core.NotFound, "interaction %s opened no dialog of this person", id)
	}
	modal := from.modal
	for key := range values {
		if !slices.Contains(modal.Inputs, key) {
			return 0, core.Errorf(core.Invalid, "the dialog has no field %q", key)
		}
	}
	list := []any{}
	for n, field := range modal.Fields {
		value, ok := values[field.CustomID]
		if !ok {
			value = field.Value
		}
		if !field.fits(value) {
			return 0, core.Errorf(core.Invalid, "the app does not send %q as %s", cutText(value, 60), field.Label)
		}
		in := map[string]any{"type": textInput, "id": 2*n + 2, "custom_id": field.CustomID, "value": value}
		if modal.rows[n] {
			list = append(list, map[string]any{"type": actionRow, "id": 2*n + 1, "components": []any{in}})
		} else {
			list = append(list, map[string]any{"type": labelType, "id": 2*n + 1, "component": in})
		}
	}
	c := s.channels[from.channel]
	i := s.begin(from.bot, u, c, kindModal)
	i.message = from.message
	s.deliver(i, map[string]any{"custom_id": modal.CustomID, "components": list}, c.index[from.message])
	from.modal = nil
	return i.id, nil
}
