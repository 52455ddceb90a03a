package core

import "strings"

// AccuracyLevels returns the levels of a council of several models, the cheapest first.
func AccuracyLevels() []string { return []string{"fast", "balanced", "high", "maximum"} }

// councilName is the council's among the names of models, at the level balanced; others
// are behind a slash.
const councilName = "council"

// CouncilModel returns the model name of a level; "" if there is no
// such level.
func CouncilModel(level string) string {
	for _, l := range AccuracyLevels() {
		switch {
		case l != level:
		case l == "balanced":
			return councilName
		default:
			return councilName + "/" + l
		}
	}
	return ""
}

// CouncilLevel returns the level of a model name; "" if it is not the
// council's.
func CouncilLevel(model string) string {
	if model == councilName {
		return "balanced"
	}
	if level, ok := strings.CutPrefix(model, councilName+"/"); ok && CouncilModel(level) != "" {
		return level
	}
	return ""
}
