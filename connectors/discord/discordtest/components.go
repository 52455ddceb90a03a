package discordtest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Component types ([components] "Component Types") that messages may have here.
const (
	actionRow    = 1
	buttonType   = 2
	stringSelect = 3
	textInput    = 4
)

// rows checks the components of a message and returns them as they are.
func (f *form) rows() json.RawMessage {
	list := f.array("components")
	if len(list) == 0 {
		return nil
	}
	if len(list) > 5 {
		f.tooLong("components", 5)
	}
	seen := map[string]bool{}
	for i, raw := range list {
		path := "components." + strconv.Itoa(i)
		row := &form{}
		json.Unmarshal(raw, &row.fields)
		if !row.has("type") {
			f.required(path + ".type")
			continue
		}
		if row.integer("type") != actionRow { // Components V2 are not simulated
			f.union(path, "1")
			continue
		}
		f.row(path+".components", row.array("components"), seen)
	}
	return f.fields["components"]
}

// row checks what an action row holds: up to 5 buttons, or one select
// ([components] "Action Row").
func (f *form) row(path string, list []json.RawMessage, seen map[string]bool) {
	if len(list) < 1 || len(list) > 5 {
		f.badLength(path, 1, 5)
		return
	}
	for i, raw := range list {
		at := path + "." + strconv.Itoa(i)
		c := &form{}
		json.Unmarshal(raw, &c.fields)
		switch kind := c.integer("type"); kind {
		case buttonType:
			f.button(at, c)
		case stringSelect, 5, 6, 7, 8:
			if len(list) > 1 {
				f.wrong(path, "COMPONENT_LAYOUT_WIDTH_EXCEEDED", "The maximum width of the layout is exceeded.") // [practice]
			}
			f.selectMenu(at, c, kind)
		default:
			f.union(at, "2, 3, 5, 6, 7, 8")
			continue
		}
		if id := c.text("custom_id"); id != "" {
			if seen[id] { // disabled ones count too ([docs#3673])
				f.wrong(at+".custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
			}
			seen[id] = true
		}
	}
}

// button is [components] "Button": a custom_id of 1–100 characters, or a url
// for style 5; a label of at most 80.
func (f *form) button(at string, c *form) {
	style := c.integer("style")
	switch {
	case !c.has("style"):
		f.required(at + ".style")
	case style < 1 || style > 6:
		f.choices(at+".style", "1, 2, 3, 4, 5, 6")
	case style == 5 && !c.has("url"):
		f.required(at + ".url")
	case style < 5 && c.has("url"), style == 5 && c.has("custom_id"):
		f.wrong(at, "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE", "A custom id and url cannot both be specified") // [practice]
	case style < 5:
		f.customID(at, c)
	}
	f.limit(at+".label", c.text("label"), 80)
	if !c.has("label") && !c.has("emoji") {
		f.required(at + ".label")
	}
}

func (f *form) customID(at string, c *form) {
	id := c.text("custom_id")
	switch n := utf8.RuneCountInString(id); {
	case !c.has("custom_id"):
		f.required(at + ".custom_id")
	case n < 1 || n > 100:
		f.badLength(at+".custom_id", 1, 100)
	}
}

// selectMenu is [components] "String Select" and those that the app fills.
func (f *form) selectMenu(at string, c *form, kind int) {
	f.customID(at, c)
	f.limit(at+".placeholder", c.text("placeholder"), 150)
	least, most := c.bound("min_values", 1), c.bound("max_values", 1)
	f.between(at+".min_values", least, 0, 25)
	f.between(at+".max_values", most, 1, 25)
	if least > most { // the code is ours
		f.wrong(at+".min_values", "NUMBER_TYPE_MAX", "min_values must be equal to or less than max_values.")
	}
	if kind == stringSelect {
		f.entries(at, c, most)
	}
}

// entries are 1 to 25, each with a label and a value of its own, of 1 to 100
// characters both, and a description of at most 100.
func (f *form) entries(at string, c *form, most int) {
	options := c.array("options")
	if len(options) < 1 || len(options) > 25 {
		f.badLength(at+".options", 1, 25)
	}
	if most > len(options) { // the code is ours
		f.wrong(at+".max_values", "NUMBER_TYPE_MAX", "max_values must be equal to or less than the number of options.")
	}
	values := map[string]bool{}
	for i, raw := range options {
		o := &form{}
		json.Unmarshal(raw, &o.fields)
		path := at + ".options." + strconv.Itoa(i)
		for _, key := range []string{"label", "value"} {
			if n := utf8.RuneCountInString(o.text(key)); n < 1 || n > 100 {
				f.badLength(path+"."+key, 1, 100)
			}
		}
		f.limit(path+".description", o.text("description"), 100)
		if v := o.text("value"); values[v] {
			f.wrong(path, "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", "The specified option value is already used") // [practice]
		}
		values[o.text("value")] = true
	}
}

// bound returns a number that may be left out.
func (f *form) bound(key string, otherwise int) int {
	if !f.has(key) {
		return otherwise
	}
	return f.integer(key)
}

// union is a component of a kind that has no place there ([practice]).
func (f *form) union(path, list string) {
	f.wrong(path, "UNION_TYPE_CHOICES", `Value of field "type" must be one of (`+list+`).`)
}

// between is [practice] for a number out of its bounds.
func (f *form) between(path string, n, least, most int) {
	switch {
	case n < least:
		f.wrong(path, "NUMBER_TYPE_MIN", "int value should be greater than or equal to "+strconv.Itoa(least)+".")
	case n > most:
		f.wrong(path, "NUMBER_TYPE_MAX", "int value should be less than or equal to "+strconv.Itoa(most)+".")
	}
}

// A Button is a component that a user can use.
type Button struct {
	Type     int    `json:"type"` // 2 a button, 3 and 5–8 a select menu
	Label    string `json:"label,omitempty"`
	CustomID string `json:"custom_id,omitempty"`
	URL      string `json:"url,omitempty"`
	Style    int    `json:"style,omitempty"`
	Disabled bool   `json:"disabled,omitempty"`
	// Of a select menu:
	Placeholder string   `json:"placeholder,omitempty"`
	Options     []Option `json:"options,omitempty"`
	Least       *int     `json:"min_values,omitempty"` // how many are to be chosen; nil is 1
	Most        *int     `json:"max_values,omitempty"`
}

// An Option is one entry of a select menu.
type Option struct {
	Label       string `json:"label"`
	Value       string `json:"value"`
	Description string `json:"description,omitempty"`
}

// takes reports whether the app lets a user use the component with values:
// within the menu's limits, each one of its entries and once.
func (b *Button) takes(values []string) bool {
	if b.Type == buttonType {
		return len(values) == 0
	}
	least, most := 1, 1
	if b.Least != nil {
		least = *b.Least
	}
	if b.Most != nil {
		most = *b.Most
	}
	for i, v := range values {
		if slices.Contains(values[:i], v) || b.Type == stringSelect && !slices.ContainsFunc(b.Options, func(o Option) bool { return o.Value == v }) {
			return false
		}
	}
	return len(values) >= least && len(values) <= most
}

// buttons returns the components of a message by row, leniently: users may have
// sent types that no one knows.
func buttons(raw json.RawMessage) [][]Button {
	if len(raw) == 0 || bytes.Equal(raw, emptyList) {
		return nil
	}
	var rows []struct {
		Components []Button `json:"components"`
	}
	if json.Unmarshal(raw, &rows) != nil {
		return nil
	}
	var out [][]Button
	for _, r := range rows {
		if len(r.Components) > 0 {
			out = append(out, r.Components)
		}
	}
	return out
}

// usable finds the component with a custom id.
func usable(rows [][]Button, id string) *Button {
	for _, row := range rows {
		i := slices.IndexFunc(row, func(b Button) bool { return b.CustomID == id && id != "" && !b.Disabled })
		if i >= 0 {
			return &row[i]
		}
	}
	return nil
}
