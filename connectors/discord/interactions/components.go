package interactions

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bwmarrin/discordgo"

	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
	"gatehouse/core/texts"
)

const (
	maxRows    = 5  // Component Reference, Action Row
	maxPerRow  = 5  // buttons in one
	maxLabel   = 80 // Button
	maxEntries = 25 // String Select, options
	maxEntry   = 100
	maxData    = 64 // bytes of a core.Button's data
)

// Prefixes of custom ids of components that are not plain buttons. A plain button's id
// is its data, whose first colon follows 16 characters.
const (
	menuPrefix    = "menu:"    // followed by its number in the message; the data is the entry's value
	formPrefix    = "form:"    // followed by the data
	severalPrefix = "several:" // as menuPrefix; several entries can be selected
)

type button struct {
	Type     discordgo.ComponentType `json:"type"`
	Style    discordgo.ButtonStyle   `json:"style"`
	Label    string                  `json:"label"`
	CustomID string                  `json:"custom_id"`
}

type selectMenu struct {
	Type        discordgo.ComponentType `json:"type"`
	CustomID    string                  `json:"custom_id"`
	Placeholder string                  `json:"placeholder,omitempty"`
	Most        int                     `json:"max_values,omitempty"` // maximum selection; 0 means one
	Options     []menuEntry             `json:"options"`
}

type menuEntry struct {
	Label string `json:"label"`
	Value string `json:"value"`
	Taken bool   `json:"default,omitempty"` // selected when the menu opens
}

// Layout arranges buttons in at most five rows; a row of more than five buttons
// continues in the next. If there are too many, buttons that are alone in their rows
// become entries of menus. It returns an error if they still do not fit.
func Layout(rows [][]core.Button) ([]wire.Row, error) {
	for _, from := range rows {
		for _, b := range from {
			if len(b.Data) == 0 || len(b.Data) > maxData {
				return nil, fmt.Errorf("the data of button %q has %d bytes, 1 to %d are possible", b.Label, len(b.Data), maxData)
			}
		}
	}
	rows = withoutDone(rows)
	out := asButtons(rows)
	if len(out) > maxRows || picks(rows) {
		out = asMenus(rows)
	}
	if len(out) > maxRows {
		return nil, fmt.Errorf("the buttons take %d rows, %d are possible", len(out), maxRows)
	}
	return out, nil
}

// withoutDone removes the buttons that end a multiple choice: a menu is submitted
// when it closes.
func withoutDone(rows [][]core.Button) (out [][]core.Button) {
	for _, from := range rows {
		from = slices.DeleteFunc(slices.Clone(from), func(b core.Button) bool { return b.Pick == core.PickDone })
		if len(from) > 0 {
			out = append(out, from)
		}
	}
	return out
}

// picks reports whether several of the buttons may be chosen together.
func picks(rows [][]core.Button) bool {
	return slices.ContainsFunc(rows, func(from []core.Button) bool { return len(from) == 1 && from[0].Pick == core.PickEntry })
}

func asButtons(rows [][]core.Button) []wire.Row {
	out := []wire.Row{}
	for _, from := range rows {
		for i, b := range from {
			if i%maxPerRow == 0 {
				out = append(out, wire.Row{Type: discordgo.ActionsRowComponent})
			}
			id := b.Data
			if b.Form {
				id = formPrefix + id
			}
			last := &out[len(out)-1]
			last.Components = append(last.Components, button{discordgo.ButtonComponent, discordgo.SecondaryButton, cutRunes(cmp.Or(b.Label, "…"), maxLabel), id})
		}
	}
	return out
}

// asMenus turns adjacent rows of one button into menus and keeps the other rows.
func asMenus(rows [][]core.Button) []wire.Row {
	out := []wire.Row{}
	var m *selectMenu // being filled; nil between runs of single buttons
	for _, from := range rows {
		if len(from) != 1 || from[0].Form {
			m = nil
			out = append(out, asButtons([][]core.Button{from})...)
			continue
		}
		several := from[0].Pick == core.PickEntry
		if m == nil || len(m.Options) == maxEntries || several != (m.Most > 0) {
			m = &selectMenu{Type: discordgo.SelectMenuComponent, CustomID: menuPrefix + strconv.Itoa(len(out)), Placeholder: texts.Text("menu_one")}
			if several {
				m.CustomID, m.Placeholder = severalPrefix+strconv.Itoa(len(out)), texts.Text("menu_several")
			}
			out = append(out, wire.Row{Type: discordgo.ActionsRowComponent, Components: []any{m}})
		}
		m.Options = append(m.Options, menuEntry{cutRunes(cmp.Or(from[0].Label, "…"), maxEntry), from[0].Data, from[0].Picked})
		if several {
			m.Most = len(m.Options)
		}
	}
	return out
}

// picked returns the data of all entries selected together; nil if only one can be.
func picked(i *wire.Interaction) []string {
	if !strings.HasPrefix(i.Data.CustomID, severalPrefix) {
		return nil
	}
	return i.Data.Values
}

// pressed returns the data of a used component, and whether it opens a form.
func pressed(i *wire.Interaction) (data string, form bool) {
	data = i.Data.CustomID
	if strings.HasPrefix(data, menuPrefix) || strings.HasPrefix(data, severalPrefix) {
		if len(i.Data.Values) == 0 {
			return "", false
		}
		return i.Data.Values[0], false
	}
	if rest, ok := strings.CutPrefix(data, formPrefix); ok {
		return rest, true
	}
	return data, false
}
