package main

import (
	"strings"

	"gatehouse/core/texts"
)

// textUnsupported answers a message of a kind that cannot be read yet.
func textUnsupported(kind string) string {
	if kind == "voice message" {
		return texts.Text("unheard")
	}
	if kind != "" {
		article := "a "
		if strings.ContainsRune("aeiou", rune(kind[0])) {
			article = "an "
		}
		kind = article + kind
	}
	return texts.Text("unsupported", texts.With{"Kind": kind})
}

// textFailed tells why there is no answer, and whether to try again.
func textFailed(message string, canRetry bool) string {
	return texts.Text("failed", texts.With{"Reason": message, "Again": canRetry})
}
