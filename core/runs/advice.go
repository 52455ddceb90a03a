package runs

// Advice returns what the operator can do about a failed run, by its error code and the
// setting to check ("" for none); "" where nothing is known.
func Advice(code, setting string) string {
	switch code {
	case "auth":
		if setting != "" {
			setting = " (" + setting + ")"
		}
		return "Replace the provider’s key" + setting + ", then retry."
	case "no_credit":
		return "Add credit to the account with the provider, or choose another model, then retry."
	case "rate_limited", "overloaded", "silence", "cut_off", "garbage":
		return "Retry in a minute. If it happens often, add a fallback (GATEHOUSE_MODEL_FALLBACKS)."
	case "unavailable":
		if setting != "" {
			return "Check " + setting + ", then retry."
		}
		return "Check the model’s name and address and the provider’s status page, then retry."
	case "too_long":
		return "The message is left out of later turns. Shorten it, or choose a model with a larger context."
	case "budget":
		return "Raise the budget in Settings, or wait until it starts again."
	case "bad_request":
		return "If the provider refused the message, later turns leave it out; change it, or try another model. The log has the provider’s error."
	case "internal":
		return "Look into the log for this run; another model may answer."
	}
	return ""
}
