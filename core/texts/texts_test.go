package texts

import (
	"strings"
	"testing"
	"unicode/utf16"

	"gatehouse/core"
)

// plainRoom is a platform that counts what it is given.
var plainRoom = Room{Most: 2000, Size: func(p core.Part) int { return len(utf16.Encode([]rune(p.Text))) }}

func TestEveryTextOfTheGateIsSaid(t *testing.T) {
	for _, name := range namesIn(t, gate) {
		part, err := Say(name, Words{Code: "ABCD2345"})
		if err != nil || part.Text == "" || len(part.Text) > 1500 {
			t.Errorf("%s: %v, %q", name, err, part.Text)
		}
		for _, s := range part.Spans {
			if part.Text[s.Offset:s.Offset+s.Length] != "ABCD2345" {
				t.Errorf("%s: the styled piece is %q", name, part.Text[s.Offset:s.Offset+s.Length])
			}
		}
	}
	if _, err := Say("no such text", Words{}); err == nil {
		t.Error("a text that is not there is said")
	}
}

// Whoever opens a text and saves it as it is has changed nothing.
func TestADefaultIsATextThatCanBeWritten(t *testing.T) {
	for _, o := range Editable() {
		body := Default(o.Name)
		if err := o.Check(body, "family", plainRoom); err != nil {
			t.Errorf("%s: %v", o.Name, err)
		}
		want, err := Say(o.Name, Example("family"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := SayOwn(o, body, Example("family")); err != nil || got.Text != want.Text || len(got.Spans) != len(want.Spans) {
			t.Errorf("%s: as written it is %q, %v", o.Name, got.Text, err)
		}
	}
}

func TestAnOwnTextReportsWhatIsFilledIn(t *testing.T) {
	o, _ := Find("code")
	for body, want := range map[string]string{
		"Ciao {{.Name}}, sono {{.Bot}}: {{.Code}}":                                   "Ciao Ada, sono family: K7M2Q9XT",
		"{{with .Name}}Hello {{.}}, {{$.Code}}{{else}}{{.Code}}{{end}}":              "Hello Ada, K7M2Q9XT",
		"{{if .Name}}{{.Code}}{{else if .Bot}}{{.Code}}{{end}}":                      "K7M2Q9XT",
		"**stars** <b>&amp;</b> [x](y) {{.Code}}":                                    "**stars** <b>&amp;</b> [x](y) K7M2Q9XT",
		"{{/* a note */}}{{.Code}}{{with .Name}}{{if .}} {{$.Name}}{{end}}{{end}}\n": "K7M2Q9XT Ada",
	} {
		if err := o.Check(body, "family", plainRoom); err != nil {
			t.Errorf("%q: %v", body, err)
		}
		if got, err := SayOwn(o, body, Example("family")); err != nil || got.Text != want || len(got.Spans) != 1 {
			t.Errorf("%q says %q, %v", body, got.Text, err)
		}
	}
	hostile := Example("family")
	hostile.Name = "\u202eEve\n\n{{.Code}}\x00 " + strings.Repeat("x", 500)
	got, err := SayOwn(o, "Hi {{.Name}}: {{.Code}}", hostile)
	if err != nil || strings.ContainsAny(got.Text, "\u202e\n\x00") || !strings.HasPrefix(got.Text, "Hi Eve {{.Code}} xx") || len(got.Text) > 100 {
		t.Errorf("a hostile name makes it %q, %v", got.Text, err)
	}
}

func TestWhatCanNotBeSaidIsReportedByLine(t *testing.T) {
	code, _ := Find("code")
	welcome, _ := Find("approved")
	for _, c := range []struct {
		o          Own
		body, says string
	}{
		{code, "Hello\n{{.Cod}}", "line 2: there is no field {{.Cod}}; there is {{.Code}}, {{.Name}} and {{.Bot}}"},
		{welcome, "Hello {{.Code}}", "line 1: there is no field {{.Code}}; there is {{.Name}} and {{.Bot}}"},
		{welcome, "a\nb\n{{Name}}", "line 3: {{Name}} has no meaning here; there is {{.Name}}"},
		{welcome, "a\n{{.Name\nb", "line 3: {{b}} has no meaning here"},
		{welcome, "a\n{{.Name", "line 2: braces that are opened there"},
		{welcome, "{{if .Name}}a", "line 1: the text ends before an {{end}}"},
		{welcome, "a {{end}}", "line 1: unexpected {{end}}"},
		{welcome, "a\n{{ } }}", "line 2: "},
		{welcome, "{{range 1000000000}}x{{end}}", "line 1: only fields, if, else and with"},
		{welcome, "{{printf \"%1000000000d\" 1}}", "line 1: exactly one field belongs between the braces"},
		{welcome, "{{len .Name}}", "line 1: exactly one field"},
		{welcome, "{{.Name.Foo}}", "line 1: there is no field {{.Name.Foo}}"},
		{welcome, "{{.ID}}", "line 1: there is no field {{.ID}}"},
		{welcome, "{{$x := .Name}}{{$x}}", "line 1: exactly one field"},
		{welcome, "x\n{{.}}", "line 2: there is no field {{.}}"},
		{welcome, "{{with .Name}}{{.Bot}}{{end}}x", "line 1: there is no .Bot here: inside of a with"},
		{welcome, "{{template \"denied\"}}", "line 1: only fields"},
		{welcome, "{{define \"x\"}}a{{end}}b", "{{define} and {{block}} cannot be used here"},
		{welcome, "{{if false}}{{.Foo}}{{end}}a", "line 1: "},
		{welcome, "{{if .Foo}}a{{end}}b", "line 1: there is no field {{.Foo}}"},
		{welcome, "b{{with .Foo}}a{{else}}b{{end}}", "line 1: there is no field {{.Foo}}"},
		{welcome, "b{{if .Name}}a{{else}}\n{{.Foo}}{{end}}", "line 2: there is no field {{.Foo}}"},
		{welcome, " \n ", "it is empty"},
		{welcome, "{{/* only a note */}}", "the text would be empty"},
		{welcome, "{{.Name}}", "the text would be empty for a person without a name"},
		{code, "Hello {{.Name}}", "the code is missing"},
		{code, "{{with .Name}}{{$.Code}}{{else}}Hi{{end}}", "the code is missing for a person without a name"},
		{welcome, "ok\na\x00b", "line 2: the control character U+0000"},
		{welcome, "a\xff", "it is not text in UTF-8"},
		{welcome, strings.Repeat("x", 1990) + "{{.Name}}", "it is too long: with a long name it takes 2055 characters, and a message here holds 2000"},
		{welcome, strings.Repeat("x", MaxSource+1), "it is too long: "},
	} {
		err := c.o.Check(c.body, "family", plainRoom)
		want := strings.ReplaceAll(c.says, "{{define} ", "{{define}} ")
		if core.KindOf(err) != core.Invalid || !strings.HasPrefix(core.TextOf(err), want) {
			t.Errorf("%.60q: %v\n want %q", c.body, err, want)
		}
	}
}

// What was let pass can be said with whatever name.
func FuzzOwnText(f *testing.F) {
	for _, o := range Editable() {
		f.Add(Default(o.Name), "Ada")
	}
	f.Add("{{with .Name}}{{.}}{{else if .Bot}}{{.Bot}}{{end}}{{.Code}}", "{{")
	f.Add("{{if .Code}}{{- .Code -}}{{end}}", "\u202e")
	f.Fuzz(func(t *testing.T, body, name string) {
		for _, o := range Editable() {
			if o.Check(body, "family", plainRoom) != nil {
				continue
			}
			w := Example("family")
			w.Name = name
			part, err := SayOwn(o, body, w)
			if err != nil || part.Text == "" || plainRoom.Size(part) > plainRoom.Most || o.Code && len(part.Spans) != 1 {
				t.Errorf("%q with the name %q: %q, %v", body, name, part.Text, err)
			}
		}
	})
}
