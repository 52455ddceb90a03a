package texts

import "testing"

func TestEscapeLeavesNoMarkup(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain text, 1.5 (yes)": "plain text, 1.5 (yes)",
		"*a* _b_ `c` ~d~":       "\\*a\\* \\_b\\_ \\`c\\` \\~d\\~",
		"[x](y) ![z] <i> #1":    `\[x\](y) \!\[z\] \<i\> \#1`,
		`a\b | c`:               `a\\b \| c`,
	} {
		if got := Escape(text); got != want {
			t.Errorf("Escape(%q) = %q, want %q", text, got, want)
		}
	}
}
