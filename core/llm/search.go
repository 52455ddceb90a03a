package llm

// A Search lets the provider check the web while it answers, where About
// means that the model can. The model decides what it looks for.
type Search struct {
	Most    int      // searches for one request; 0 is one
	Only    []string // results of these domains alone; empty: all. Goes before Without
	Without []string // no results of these domains
}

// Found is a page that a provider's search has shown to its model. Title, Age
// and what is on the page were written by strangers.
type Found struct {
	Title, URL, Age string
}

// searching returns those of models that can do what req asks for: all of them,
// where it asks for no search.
func searching(models []Model, req *Request) []Model {
	if req == nil || req.Search == nil {
		return models
	}
	var out []Model
	for _, m := range models {
		if m.About().Search {
			out = append(out, m)
		}
	}
	return out
}
