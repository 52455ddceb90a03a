package api

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// eachSchema calls f with every schema of the document, once.
func eachSchema(doc *openapi3.T, f func(at string, s *openapi3.Schema)) {
	seen := map[*openapi3.Schema]bool{}
	var walk func(at string, ref *openapi3.SchemaRef)
	walk = func(at string, ref *openapi3.SchemaRef) {
		if ref == nil || ref.Value == nil || seen[ref.Value] {
			return
		}
		s := ref.Value
		seen[s] = true
		f(at, s)
		for name, p := range s.Properties {
			walk(at+"."+name, p)
		}
		for _, list := range []openapi3.SchemaRefs{s.AllOf, s.OneOf, s.AnyOf} {
			for _, x := range list {
				walk(at, x)
			}
		}
		walk(at+"[]", s.Items)
	}
	for name, ref := range doc.Components.Schemas {
		walk(name, ref)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.RequestBody != nil {
				for _, m := range op.RequestBody.Value.Content {
					walk(method+" "+path, m.Schema)
				}
			}
			for code, r := range op.Responses.Map() {
				for _, m := range r.Value.Content {
					walk(method+" "+path+" "+code, m.Schema)
				}
			}
		}
	}
}

// properties returns those of s and of what it is all of.
func properties(s *openapi3.Schema) map[string]bool {
	all := map[string]bool{}
	for name := range s.Properties {
		all[name] = true
	}
	for _, x := range s.AllOf {
		for name := range properties(x.Value) {
			all[name] = true
		}
	}
	return all
}

func TestRequiredPropertiesOfTheDocumentAreDefined(t *testing.T) {
	doc, err := document3()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	eachSchema(doc, func(at string, s *openapi3.Schema) {
		if len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0 { // may be defined there
			return
		}
		for _, name := range s.Required {
			if n++; s.Properties[name] == nil {
				t.Errorf("%s requires %s, and does not define it", at, name)
			}
		}
	})
	if n < 100 {
		t.Errorf("only %d required properties were found", n)
	}
}

func TestExamplesOfRequestsNameDefinedProperties(t *testing.T) {
	doc, err := document3()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.RequestBody == nil {
				continue
			}
			for kind, m := range op.RequestBody.Value.Content {
				example, ok := m.Example.(map[string]any)
				if !ok || m.Schema == nil {
					continue
				}
				n++
				known := properties(m.Schema.Value)
				for name := range example {
					if !known[name] {
						t.Errorf("%s %s, %s: the example has %s, which the schema does not define", method, path, kind, name)
					}
				}
			}
		}
	}
	if n == 0 {
		t.Error("no example was found")
	}
}
