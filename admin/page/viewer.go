package page

import "regexp"

// changing are the forms of a page that change something, but for those that are marked as of the
// viewer's own account (data-own). Templates escape what others wrote, so that it has no tags.
var changing = regexp.MustCompile(`(?s)(<form\b[^>]*\bmethod="post"[^>]*>)(.*?)</form>`)

var own = regexp.MustCompile(`\bdata-own\b`)

// disabled returns a page with the controls of all forms that change something disabled, as a
// viewer gets it. What a form shows stays readable.
func disabled(page []byte) []byte {
	return changing.ReplaceAllFunc(page, func(form []byte) []byte {
		m := changing.FindSubmatch(form)
		if own.Match(m[1]) {
			return form
		}
		out := append([]byte{}, m[1]...)
		out = append(out, `<fieldset class="viewing" disabled>`...)
		out = append(out, m[2]...)
		return append(out, `</fieldset></form>`...)
	})
}
