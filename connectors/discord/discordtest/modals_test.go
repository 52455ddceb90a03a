package discordtest_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors/discord/discordtest"
	"gatehouse/core"
)

func label(text string, in m) m { return m{"type": 18, "label": text, "component": in} }

func input(id string, more m) m {
	out := m{"type": 4, "custom_id": id, "style": 1}
	for k, v := range more {
		out[k] = v
	}
	return out
}

func modal(title string, list ...m) m {
	return m{"type": 9, "data": m{"custom_id": "d", "title": title, "components": list}}
}

func TestADialogIsWithinThePlatformsBounds(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	a := o.commanded(k, o.dm)
	six := []m{}
	for _, id := range strings.Split("a b c d e f", " ") {
		six = append(six, label("Name", input(id, nil)))
	}
	long := func(n int) string { return strings.Repeat("ä", n) }
	const at = "data.components.0"
	for _, c := range []struct {
		name              string
		p                 m
		field, code, text string
	}{
		{"title", modal(long(46), six[0]), "data.title", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 45 in length."},
		{"none", modal("T"), "data.components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length."},
		{"six", modal("T", six...), "data.components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length."},
		{"bare input", modal("T", input("a", nil)), at, "UNION_TYPE_CHOICES", `Value of field "type" must be one of (1, 10, 18).`},
		{"button", modal("T", label("L", button("a"))), at + ".component", "UNION_TYPE_CHOICES", `Value of field "type" must be one of (3, 4, 5, 6, 7, 8, 19, 21, 22, 23).`},
		{"button in a row", modal("T", row(button("a"))), at + ".components.0", "UNION_TYPE_CHOICES", `Value of field "type" must be one of (4).`},
		{"label", modal("T", label(long(46), input("a", nil))), at + ".label", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 45 in length."},
		{"no label", modal("T", label("", input("a", nil))), at + ".label", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 45 in length."},
		{"two labels", modal("T", label("L", input("a", m{"label": "L"}))), at + ".component.label", "COMPONENT_LABEL_NOT_ALLOWED", "A text input in a label has no label of its own."},
		{"description", modal("T", m{"type": 18, "label": "L", "description": long(101), "component": input("a", nil)}), at + ".description", "BASE_TYPE_MAX_LENGTH", "Must be 100 or fewer in length."},
		{"nothing in it", modal("T", m{"type": 18, "label": "L"}), at + ".component", "BASE_TYPE_REQUIRED", "This field is required"},
		{"no style", modal("T", label("L", m{"type": 4, "custom_id": "a"})), at + ".component.style", "BASE_TYPE_REQUIRED", "This field is required"},
		{"style", modal("T", label("L", input("a", m{"style": 3}))), at + ".component.style", "BASE_TYPE_CHOICES", "Value must be one of {1, 2}."},
		{"custom id", modal("T", label("L", input(long(101), nil))), at + ".component.custom_id", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length."},
		{"twice", modal("T", six[0], six[0]), "data.components.1.component.custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated"},
		{"placeholder", modal("T", label("L", input("a", m{"placeholder": long(101)}))), at + ".component.placeholder", "BASE_TYPE_MAX_LENGTH", "Must be 100 or fewer in length."},
		{"value", modal("T", label("L", input("a", m{"value": long(4001)}))), at + ".component.value", "BASE_TYPE_MAX_LENGTH", "Must be 4000 or fewer in length."},
		{"max_length", modal("T", label("L", input("a", m{"max_length": 4001}))), at + ".component.max_length", "NUMBER_TYPE_MAX", "int value should be less than or equal to 4000."},
		{"min_length", modal("T", label("L", input("a", m{"min_length": -1}))), at + ".component.min_length", "NUMBER_TYPE_MIN", "int value should be greater than or equal to 0."},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := *o
			p.T = t
			p.wrong("POST", a.callback(), c.p, c.field, c.code, c.text)
		})
	}
	o.must("POST", a.callback(), modal(long(45), six[:5]...), nil)
	o.refused("POST", a.callback(), modal("again", six[0]), 400, 40060, "Interaction has already been acknowledged.")
}

func TestADialogIsTheFirstAnswerWithinThreeSeconds(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	form := modal("T", label("L", input("a", nil)))
	a := o.commanded(k, o.dm)
	o.must("POST", a.callback(), m{"type": 5}, nil)
	o.refused("POST", a.callback(), form, 400, 40060, "Interaction has already been acknowledged.")
	k.message("MESSAGE_CREATE") // "thinking…"
	a = o.commanded(k, o.dm)
	o.clock.Advance(3*time.Second + time.Millisecond)
	o.refused("POST", a.callback(), form, 404, 10062, "Unknown interaction")
}

func TestADialogIsSentAsTheAppSendsIt(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	mine := o.send(o.dm, m{"content": "?", "components": []m{row(button("ask"))}})
	k.message("MESSAGE_CREATE")
	if _, err := o.ada.Press(o.dm, mine.ID, "ask"); err != nil {
		t.Fatal(err)
	}
	a := k.asked()
	o.must("POST", a.callback(), modal("Who?", label("Name", input("name", m{"max_length": 5})),
		m{"type": 18, "label": "Why", "description": "In a few words", "component": input("why", m{"style": 2, "required": false, "placeholder": "…"})}), nil)
	shown := o.state(a.ID, discordtest.StateModal).Modal
	want := discordtest.Field{CustomID: "why", Label: "Why", Description: "In a few words", Placeholder: "…", Lines: true, Most: 4000}
	if len(shown.Fields) != 2 || shown.Fields[1] != want || !shown.Fields[0].Required {
		t.Errorf("people see %+v", shown.Fields)
	}
	for _, v := range []map[string]string{{"name": ""}, {"name": "longer"}, {"name": "Ada", "other": "x"}, {"name": "Ada", "why": strings.Repeat("x", 4001)}} {
		if _, err := o.ada.Submit(a.ID, v); core.KindOf(err) != core.Invalid {
			t.Errorf("%.40v: %v", v, err)
		}
	}
	if _, err := o.NewUser("Eve").Submit(a.ID, map[string]string{"name": "Eve"}); core.KindOf(err) != core.NotFound {
		t.Errorf("another's dialog: %v", err)
	}
	if _, err := o.ada.Submit(a.ID, map[string]string{"name": "Ada"}); err != nil {
		t.Fatal(err)
	}
	b := k.asked()
	got, _ := json.Marshal(b.Data.Components)
	if string(got) != `[{"component":{"custom_id":"name","id":2,"type":4,"value":"Ada"},"id":1,"type":18},{"component":{"custom_id":"why","id":4,"type":4,"value":""},"id":3,"type":18}]` ||
		b.Type != 5 || b.Message == nil || b.Message.ID != mine.ID {
		t.Errorf("the bot gets %s in %+v", got, b)
	}
	if _, err := o.ada.Submit(a.ID, map[string]string{"name": "Ada"}); core.KindOf(err) != core.NotFound {
		t.Errorf("sent twice: %v", err)
	}
	o.wrong("POST", b.callback(), modal("T", label("L", input("a", nil))), "type", "INTERACTION_RESPONSE_TYPE_INVALID", "A modal can't answer a modal.")
	o.must("POST", b.callback(), m{"type": 6}, nil)
}

func TestAMenuIsWithinThePlatformsBounds(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	long := strings.Repeat("x", 101)
	two := []m{{"label": "A", "value": "a"}, {"label": "B", "value": "b"}}
	menu := func(more m) m {
		out := m{"type": 3, "custom_id": "pick", "options": two}
		for k, v := range more {
			out[k] = v
		}
		return m{"content": "x", "components": []m{row(out)}}
	}
	const at = "components.0.components.0"
	for _, c := range []struct {
		name              string
		p                 m
		field, code, text string
	}{
		{"label", menu(m{"options": []m{{"label": long, "value": "a"}}}), at + ".options.0.label", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length."},
		{"value", menu(m{"options": []m{{"label": "a", "value": long}}}), at + ".options.0.value", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length."},
		{"description", menu(m{"options": []m{{"label": "a", "value": "a", "description": long}}}), at + ".options.0.description", "BASE_TYPE_MAX_LENGTH", "Must be 100 or fewer in length."},
		{"placeholder", menu(m{"placeholder": long + long}), at + ".placeholder", "BASE_TYPE_MAX_LENGTH", "Must be 150 or fewer in length."},
		{"no options", menu(m{"options": []m{}}), at + ".options", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 25 in length."},
		{"max_values", menu(m{"max_values": 26}), at + ".max_values", "NUMBER_TYPE_MAX", "int value should be less than or equal to 25."},
		{"min_values", menu(m{"min_values": 2}), at + ".min_values", "NUMBER_TYPE_MAX", "min_values must be equal to or less than max_values."},
		{"the same value", menu(m{"options": []m{two[0], two[0]}}), at + ".options.1", "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", "The specified option value is already used"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := *o
			p.T = t
			p.wrong("POST", messages(o.dm), c.p, c.field, c.code, c.text)
		})
	}
	one, both := o.send(o.dm, menu(nil)), o.send(o.dm, menu(m{"max_values": 2, "placeholder": "Which?"}))
	k.message("MESSAGE_CREATE")
	k.message("MESSAGE_CREATE")
	for _, v := range [][]string{nil, {"a", "b"}, {"c"}, {"a", "a"}} {
		if _, err := o.ada.Press(o.dm, one.ID, "pick", v...); core.KindOf(err) != core.Invalid {
			t.Errorf("%q is chosen: %v", v, err)
		}
	}
	if _, err := o.ada.Press(o.dm, both.ID, "pick", "b", "a"); err != nil {
		t.Fatal(err)
	}
	if a := k.asked(); strings.Join(a.Data.Values, " ") != "b a" || a.Data.Kind != 3 {
		t.Errorf("got %+v", a.Data)
	}
}
