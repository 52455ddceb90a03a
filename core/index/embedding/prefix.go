package embedding

import (
	"strings"

	"gatehouse/core"
)

// Prefixes are what a model expects in front of texts, so that questions are near to the
// passages that answer them. The zero value is of models that expect nothing.
type Prefixes struct {
	Search  string // of what users search for
	Passage string // of passages
}

// families are models that were trained with prefixes.
var families = map[string]Prefixes{
	"nomic": {"search_query: ", "search_document: "},
	"e5":    {"query: ", "passage: "},
	"bge":   {"Represent this sentence for searching relevant passages: ", ""},
}

// e5 are the names of the family e5, but of those that follow instructions.
var e5 = core.Pattern(`(^|[-_/])e5[-_:]`)

// PrefixesOf returns the prefixes of a choice: none, nomic, e5, bge (also for mxbai), or
// auto, which chooses by the name of the model. Another choice is core.Invalid.
func PrefixesOf(choice, model string) (Prefixes, error) {
	model = strings.ToLower(model)
	if p, ok := families[choice]; ok {
		return p, nil
	}
	switch {
	case choice == "none" || choice == "":
		return Prefixes{}, nil
	case choice != "auto":
		return Prefixes{}, core.Errorf(core.Invalid, "the prefixes are one of auto, none, nomic, e5, bge")
	case strings.Contains(model, "nomic-embed-text"):
		return families["nomic"], nil
	case e5().MatchString(model) && !strings.Contains(model, "instruct"):
		return families["e5"], nil
	case strings.Contains(model, "mxbai-embed") || strings.Contains(model, "bge-") && strings.Contains(model, "-en"):
		return families["bge"], nil
	}
	return Prefixes{}, nil
}
