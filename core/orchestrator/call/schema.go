package call

import (
	"encoding/json"
	"strings"
)

// TaskSchema is what a call of Task gives.
const TaskSchema = `{"type":"object","additionalProperties":false,"required":["description","prompt"],"properties":{
"description":{"type":"string","description":"the work in three to five words, for people"},
"prompt":{"type":"string","description":"all that the helper needs to know"}}}`

// AskName is the name of the tool that asks users a question, here and in other loops.
const AskName = "AskUserQuestion"

// AskSchema is what a call of AskUserQuestion gives.
const AskSchema = `{"type":"object","additionalProperties":false,"required":["questions"],"properties":{
"questions":{"type":"array","minItems":1,"maxItems":4,"items":{"type":"object","additionalProperties":false,"required":["question","header","options"],"properties":{
"question":{"type":"string","description":"the whole question, with a question mark"},
"header":{"type":"string","maxLength":24,"description":"one or two words above it"},
"multiSelect":{"type":"boolean","description":"several options may be chosen"},
"options":{"type":"array","minItems":2,"maxItems":4,"items":{"type":"object","additionalProperties":false,"required":["label"],"properties":{
"label":{"type":"string"},"description":{"type":"string"}}}}}}}}}`

// Askable reports whether questions can be shown to a user as they are.
func Askable(questions json.RawMessage) bool {
	var list []struct {
		Question string `json:"question"`
		Options  []struct {
			Label string `json:"label"`
		} `json:"options"`
	}
	if json.Unmarshal(questions, &list) != nil || len(list) == 0 || len(list) > 4 {
		return false
	}
	for _, q := range list {
		if strings.TrimSpace(q.Question) == "" || len(q.Options) < 2 || len(q.Options) > 4 {
			return false
		}
		for _, o := range q.Options {
			if strings.TrimSpace(o.Label) == "" {
				return false
			}
		}
	}
	return true
}
