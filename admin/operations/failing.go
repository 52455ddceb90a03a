package operations

import (
	"time"

	"gatehouse/admin/page"
)

// A Failing model has not answered since its first failure.
type Failing struct {
	Model, Code string
	Setting     string // to check; "" for none
	Since       time.Time
	Messages    int // that it did not answer
}

// does reports what a failing model does.
func (f Failing) does() string {
	switch f.Code {
	case "auth":
		return "refuses our key"
	case "no_credit":
		return "has no credit left"
	case "rate_limited":
		return "limits how much we may ask"
	case "overloaded":
		return "is overloaded"
	case "silence":
		return "does not answer in time"
	case "cut_off", "garbage":
		return "sends broken answers"
	}
	return "is out of reach"
}

// failingAnswer returns the overview's answer on list; false where nothing fails.
func failingAnswer(list []Failing) (page.Answer, bool) {
	if len(list) == 0 {
		return page.Answer{}, false
	}
	a := page.Answer{Key: "failing", Question: "Do the models answer?", Tone: "bad", Path: modelsPath, Link: "Models",
		Answer: "No: " + page.Count(len(list), "model fails", "models fail") + ".", Short: page.Count(len(list), "model fails", "models fail")}
	for _, f := range list {
		then := ", " + page.Count(f.Messages, "message", "messages") + " affected"
		if f.Setting != "" {
			then += "; check " + f.Setting
		}
		a.Detail = append(a.Detail, page.Detail{Who: f.Model, Text: " " + f.does() + " since ", At: f.Since, Then: then, Acts: []page.Act{{Path: modelsPath + "/test", Label: "Test", Name: "model", Value: f.Model}}})
	}
	return a, true
}
