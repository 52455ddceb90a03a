package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// What the page /docs shows, read out of openapi.yaml.
type (
	docPage struct {
		Title, Summary, About string
		Tags                  []docTag
		Schemas               []docSchema
	}
	docTag struct {
		Name, About string
		Operations  []docOperation
	}
	docOperation struct {
		ID, Method, Path, Summary, About, Scopes string
		Parameters                               []docField
		Body                                     *docSchema
		Form                                     docType // the body may be a form of this too
		Example                                  string
		Responses                                []docResponse
	}
	docResponse struct {
		Status, About, Media, Example string
		Type                          docType
	}
	docSchema struct {
		Name, About string
		Type        docType
		Fields      []docField
		All         []docType   // it has the fields of these too
		Kinds       []docSchema // it is one of these
	}
	docField struct {
		Name, In, About string
		Required        bool
		Type            docType
	}
	// A docType is a type in words; Ref is the schema it leads to.
	docType struct{ Text, Ref string }
)

// A node is one value of the document. Absent values are empty nodes.
type node struct{ v any }

func (n node) at(keys ...string) node {
	for _, key := range keys {
		m, _ := n.v.(yaml.MapSlice)
		n = node{}
		for _, item := range m {
			if fmt.Sprint(item.Key) == key {
				n = node{item.Value}
			}
		}
	}
	return n
}

func (n node) String() string {
	if n.v == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprint(n.v))
}

func (n node) list() (all []node) {
	items, _ := n.v.([]any)
	for _, item := range items {
		all = append(all, node{item})
	}
	return all
}

// each calls f for the members of a mapping, in order.
func (n node) each(f func(key string, v node)) {
	m, _ := n.v.(yaml.MapSlice)
	for _, item := range m {
		f(fmt.Sprint(item.Key), node{item.Value})
	}
}

// refName is the last word of a $ref.
func (n node) refName() string {
	ref := n.at("$ref").String()
	return ref[strings.LastIndexByte(ref, '/')+1:]
}

func describe(root node) docPage {
	page := docPage{Title: root.at("info", "title").String(), Summary: root.at("info", "summary").String(), About: root.at("info", "description").String()}
	resolve := func(n node) node {
		ref, ok := strings.CutPrefix(n.at("$ref").String(), "#/")
		if !ok {
			return n
		}
		return root.at(strings.Split(ref, "/")...)
	}
	for _, t := range root.at("tags").list() {
		page.Tags = append(page.Tags, docTag{Name: t.at("name").String(), About: t.at("description").String()})
	}
	root.at("paths").each(func(path string, item node) {
		item.each(func(method string, op node) {
			tag := op.at("tags").list()[0].String()
			i := slices.IndexFunc(page.Tags, func(t docTag) bool { return t.Name == tag })
			page.Tags[i].Operations = append(page.Tags[i].Operations, operation(path, method, op, resolve))
		})
	})
	root.at("components", "schemas").each(func(name string, s node) { page.Schemas = append(page.Schemas, schema(name, s)) })
	return page
}

func operation(path, method string, op node, resolve func(node) node) docOperation {
	o := docOperation{ID: op.at("operationId").String(), Method: strings.ToUpper(method), Path: path,
		Summary: op.at("summary").String(), About: op.at("description").String()}
	var scopes []string
	for _, s := range op.at("x-scopes").list() {
		scopes = append(scopes, s.String())
	}
	o.Scopes = strings.Join(scopes, " or ")
	for _, p := range op.at("parameters").list() {
		p = resolve(p)
		o.Parameters = append(o.Parameters, docField{Name: p.at("name").String(), In: p.at("in").String(),
			Required: p.at("required").String() == "true", About: p.at("description").String(), Type: typeOf(p.at("schema"))})
	}
	if media := op.at("requestBody", "content", "application/json"); media.v != nil {
		s := schema("", resolve(media.at("schema")))
		s.Name = media.at("schema").refName()
		o.Body, o.Example = &s, example(media.at("example"))
	}
	if media := op.at("requestBody", "content", "multipart/form-data"); media.v != nil {
		o.Form = typeOf(media.at("schema"))
	}
	op.at("responses").each(func(status string, r node) {
		r = resolve(r)
		d := docResponse{Status: status, About: r.at("description").String()}
		if r.at("content").v == nil {
			o.Responses = append(o.Responses, d)
		}
		r.at("content").each(func(media string, c node) {
			d.Media, d.Type, d.Example = media, typeOf(c.at("schema")), example(c.at("example"))
			o.answers(d)
		})
	})
	return o
}

// answers adds a response; statuses that mean the same stand in one line.
func (o *docOperation) answers(d docResponse) {
	for i := range o.Responses {
		if r := &o.Responses[i]; d.Example == "" && r.Example == "" && r.About == d.About && r.Media == d.Media && r.Type == d.Type {
			r.Status += ", " + d.Status
			return
		}
	}
	o.Responses = append(o.Responses, d)
}

func example(n node) string {
	if s, ok := n.v.(string); ok || n.v == nil {
		return s
	}
	b, err := json.MarshalIndent(plain(n.v), "", "  ")
	if err != nil {
		return ""
	}
	return string(b)
}

// plain turns ordered maps into ordinary ones, for examples.
func plain(v any) any {
	switch v := v.(type) {
	case yaml.MapSlice:
		m := map[string]any{}
		for _, item := range v {
			m[fmt.Sprint(item.Key)] = plain(item.Value)
		}
		return m
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	}
	return v
}

func schema(name string, s node) docSchema {
	d := docSchema{Name: name, About: s.at("description").String(), Type: typeOf(s)}
	required := map[string]bool{}
	for _, r := range s.at("required").list() {
		required[r.String()] = true
	}
	s.at("properties").each(func(field string, f node) {
		d.Fields = append(d.Fields, docField{Name: field, Required: required[field], About: f.at("description").String(), Type: typeOf(f)})
	})
	for _, part := range s.at("allOf").list() {
		if part.refName() != "" {
			d.All = append(d.All, typeOf(part))
			continue
		}
		d.Fields = append(d.Fields, schema("", part).Fields...)
	}
	for _, kind := range s.at("oneOf").list() {
		name := kind.refName()
		if name == "" {
			name = kindName(kind)
		}
		d.Kinds = append(d.Kinds, schema(name, kind))
	}
	return d
}

// kindName is what tells one alternative from the others: its type.
func kindName(s node) string {
	if name := s.at("properties", "type", "const").String(); name != "" {
		return name
	}
	for _, part := range s.at("allOf").list() {
		if name := kindName(part); name != "" {
			return name
		}
	}
	return ""
}

// typeOf says in a few words what a schema takes.
func typeOf(s node) docType {
	if name := s.refName(); name != "" {
		return docType{Text: name, Ref: name}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		if all := s.at(key).list(); len(all) > 0 {
			t := typeOf(all[0])
			if key == "oneOf" {
				t = docType{Text: "one of those below"}
			} else if key == "anyOf" {
				t.Text += " or null"
			}
			return t
		}
	}
	if c := s.at("const").String(); c != "" {
		return docType{Text: `"` + c + `"`}
	}
	if values := s.at("enum").list(); len(values) > 0 {
		var words []string
		for _, v := range values {
			words = append(words, `"`+v.String()+`"`)
		}
		return docType{Text: strings.Join(words, ", ")}
	}
	if types := s.at("type").list(); len(types) > 0 {
		return docType{Text: types[0].String() + " or null"}
	}
	switch t := s.at("type").String(); t {
	case "array":
		of := typeOf(s.at("items"))
		return docType{Text: "list of " + of.Text, Ref: of.Ref}
	case "":
		return docType{Text: "any"}
	case "string":
		if f := s.at("format").String(); f == "date-time" {
			return docType{Text: "time"}
		}
		return docType{Text: "string"}
	default:
		return docType{Text: t + bounds(s)}
	}
}

func bounds(s node) string {
	least, most := s.at("minimum").String(), s.at("maximum").String()
	switch {
	case least != "" && most != "":
		return fmt.Sprintf(" %s to %s", least, most)
	case least != "":
		return " from " + least
	}
	return ""
}
