package core_test

import (
	"testing"

	"gatehouse/core"
)

func TestNamesKeepWhatIsWrittenAndLoseWhatDeceives(t *testing.T) {
	for in, want := range map[string]string{
		"Ada 👩‍👩‍👧":  "Ada 👩‍👩‍👧",
		"👩🏽‍🚀":       "👩🏽‍🚀",
		"🏳️‍🌈 Pride": "🏳️‍🌈 Pride",
		"👩‍❤️‍👨":     "👩‍❤️‍👨",
		"🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f": "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
		"1️⃣":                                 "1️⃣",
		"می\u200cخواهم":                       "می\u200cخواهم", // Persian
		"ක්\u200dෂ":                           "ක්\u200dෂ",     // Sinhala
		"葛\U000e0100":                         "葛\U000e0100",   // a Japanese name
		"A\u200cda\u200d B\u200bob":           "Ada Bob",
		"\u202eevil\u2066x\u2069\u200f\u061c": "evilx",
		"Ada\ufe0f":                           "Ada",
		"A\u00adda\u2060\ufeff":               "Ada",
		"\u3164\u3164":                        "",
		"A\u3164da":                           "Ada",
		"👩\u200d":                             "👩",
		"\u200d👩":                             "👩",
		"👩\u200d\u200d👩":                      "👩\u200d👩",
		"Ada\U000e0041\U000e0042":             "Ada",
		"🏴\U000e0067\U000e0062":               "🏴",
		"👩 \u200d 👩":                          "👩 👩",
	} {
		if got := core.CleanName(in); got != want {
			t.Errorf("CleanName(%q) = %q, want %q", in, got, want)
		}
	}
}
