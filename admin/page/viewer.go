package page

import "html/template"

// Each form that changes something is written as
//
//	<form method="post" …>{{form .CSRF}} … {{endform .CSRF}}</form>
//
// with the token that Token returns: without one, which is a viewer's, its controls are
// disabled, and what it shows stays readable. Forms of the viewer's own account have
// OwnToken in a plain field, and are marked with data-own for the tests.

// beginForm returns what such a form begins with.
func beginForm(token string) template.HTML {
	if token == "" {
		return `<fieldset class="viewing" disabled>`
	}
	return template.HTML(`<input type="hidden" name="csrf" value="` + template.HTMLEscapeString(token) + `">`)
}

// endForm returns what it ends with.
func endForm(token string) template.HTML {
	if token == "" {
		return `</fieldset>`
	}
	return ""
}
