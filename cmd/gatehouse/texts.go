package main

import "strings"

// Words to people that belong to no package of their own.
const (
	textTooMany = "You write faster than I may answer. Please wait a minute before you write again."
	textGaveUp  = "Something keeps going wrong on my side with that message, so I have put it aside. The operator can see it."
	textStopped = "Stopped."
)

// textUnsupported answers a message of a kind that cannot be read yet.
func textUnsupported(kind string) string {
	if kind == "" {
		kind = "that kind of message"
	} else {
		article := "a "
		if strings.ContainsRune("aeiou", rune(kind[0])) {
			article = "an "
		}
		kind = article + kind
	}
	if kind == "a voice message" {
		return "I can't listen to voice messages here, so I have only kept it. Please write it as text."
	}
	return "I can't read " + kind + ". Please write it as text."
}

// textFailed tells why there is no answer, and whether to try again.
func textFailed(message string, canRetry bool) string {
	if canRetry {
		return "⚠️ " + message + " Please try again in a moment."
	}
	return "⚠️ " + message
}
