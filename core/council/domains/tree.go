// Package domains knows what questions are about: the tree of domains, how names that
// models use are resolved to it, when they become nodes of their own, a local
// classifier, and the reliability score of a model. All of it is computation; the
// tables are in core/council/ledger.
package domains

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"gatehouse/core"
	"gatehouse/core/council/choice"
)

// General is the domain of what no other one covers.
const General = "general"

// Bounds and thresholds of the tree.
const (
	MaxNodes   = 500 // of a tree, roots included
	MaxDepth   = 4
	MaxAliases = 64 // of a node

	// Alias is the similarity from which a name is taken for a node's, BestEffort
	// that from which it counts for the node and becomes a candidate.
	Alias      = 0.80
	BestEffort = 0.55
)

// A Node is a domain of the tree. Its ID is the path from the root: code.python.
type Node struct {
	ID       string    `json:"node_id"`
	Name     string    `json:"display_name"`
	Aliases  []string  `json:"aliases"`
	Queries  int       `json:"query_count"`
	LastSeen time.Time `json:"last_seen,omitzero"`
}

// Parent returns the id of the parent; "" of a root.
func Parent(id string) string {
	return id[:max(strings.LastIndexByte(id, '.'), 0)]
}

// Root returns the root of a domain.
func Root(id string) string {
	root, _, _ := strings.Cut(id, ".")
	return root
}

// Depth returns 0 for a root, 1 for its children, and so on.
func Depth(id string) int { return strings.Count(id, ".") }

// Roots returns the roots of every tree. They are never removed.
func Roots() []Node {
	return []Node{
		{ID: "code", Name: "Code", Aliases: []string{"programming", "software", "coding", "software engineering", "computer science", "development", "devops", "programmierung", "softwareentwicklung", "informatik"}},
		{ID: "math", Name: "Mathematics", Aliases: []string{"mathematics", "maths", "arithmetic", "algebra", "geometry", "calculus", "statistics", "mathematik", "rechnen"}},
		{ID: "legal", Name: "Law", Aliases: []string{"law", "legal advice", "jurisprudence", "regulation", "recht", "jura"}},
		{ID: "medical", Name: "Medicine", Aliases: []string{"medicine", "health", "healthcare", "medical advice", "medizin", "gesundheit"}},
		{ID: "finance", Name: "Finance", Aliases: []string{"finances", "economics", "investing", "accounting", "tax", "taxes", "money", "finanzen", "steuern", "wirtschaft"}},
		{ID: "science", Name: "Science", Aliases: []string{"physics", "chemistry", "biology", "astronomy", "natural science", "physik", "chemie", "biologie", "naturwissenschaft"}},
		{ID: "writing", Name: "Writing", Aliases: []string{"creative writing", "copywriting", "editing", "translation", "language", "schreiben", "übersetzung", "sprache", "text"}},
		{ID: "analysis", Name: "Analysis", Aliases: []string{"data analysis", "comparison", "evaluation", "strategy", "planning", "analyse", "auswertung", "vergleich"}},
		{ID: "history", Name: "History", Aliases: []string{"historical", "geschichte"}},
		{ID: General, Name: "General", Aliases: []string{"other", "misc", "chat", "general knowledge", "trivia", "allgemein", "sonstiges"}},
	}
}

// IsRoot reports whether a domain is a root.
func IsRoot(id string) bool {
	return slices.ContainsFunc(Roots(), func(n Node) bool { return n.ID == id })
}

// A Tree is the domains in effect. It is not changed once it is made, so it is safe
// for concurrent use.
type Tree struct {
	nodes  map[string]Node
	labels map[string]string // folded label → node
	tokens []label
}

type label struct {
	node   string
	tokens []string
}

// NewTree returns the tree of these nodes and the roots. Nodes without a parent, below
// MaxDepth or beyond MaxNodes are left out.
func NewTree(nodes []Node) *Tree {
	t := &Tree{nodes: map[string]Node{}, labels: map[string]string{}}
	all := append(Roots(), nodes...)
	core.Sort(all, func(a, b Node) int {
		return cmp.Or(cmp.Compare(Depth(a.ID), Depth(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	for _, n := range all {
		if Depth(n.ID) > MaxDepth || len(t.nodes) >= MaxNodes && t.nodes[n.ID].ID == "" {
			continue
		}
		if p := Parent(n.ID); p != "" && t.nodes[p].ID == "" || p == "" && !IsRoot(n.ID) {
			continue
		}
		if old, ok := t.nodes[n.ID]; ok { // a root with what is stored of it
			n.Aliases = append(slices.Clone(old.Aliases), n.Aliases...)
		}
		slices.Sort(n.Aliases)
		n.Aliases = slices.Compact(n.Aliases)
		n.Aliases = append([]string{}, n.Aliases[:min(len(n.Aliases), MaxAliases)]...)
		t.nodes[n.ID] = n
	}
	for _, id := range t.IDs() {
		n := t.nodes[id]
		t.label(id, id)
		t.label(id, n.Name)
		for _, a := range n.Aliases {
			t.label(id, a)
		}
	}
	return t
}

func (t *Tree) label(node, text string) {
	words := tokens(text)
	key := strings.Join(words, " ")
	if _, taken := t.labels[key]; key == "" || taken {
		return
	}
	t.labels[key] = node
	t.tokens = append(t.tokens, label{node, words})
}

// IDs returns the ids of all nodes, sorted.
func (t *Tree) IDs() []string {
	ids := make([]string, 0, len(t.nodes))
	for id := range t.nodes {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Node returns a node by its id.
func (t *Tree) Node(id string) (Node, bool) {
	n, ok := t.nodes[id]
	return n, ok
}

// Children returns the ids of a node's children, sorted.
func (t *Tree) Children(id string) []string {
	var out []string
	for _, c := range t.IDs() {
		if Parent(c) == id {
			out = append(out, c)
		}
	}
	return out
}

// A Resolution is the meaning of a name that a model used.
type Resolution struct {
	Domain     string  `json:"domain"`     // in the tree
	Nearest    string  `json:"nearest"`    // the node that is most similar
	Similarity float64 `json:"similarity"` // to it
	Candidate  bool    `json:"candidate"`  // it is no name of a node
}

// Resolve returns the node of a name. near, which may be nil, returns how near the name is
// in meaning to each label of the tree, from 0 to 1; nil where that is not known. An empty
// name is General.
func (t *Tree) Resolve(raw string, near func(name string, labels []string) []float64) Resolution {
	words := tokens(raw)
	if len(words) == 0 {
		return Resolution{Domain: General, Nearest: General}
	}
	if node, ok := t.labels[strings.Join(words, " ")]; ok {
		return Resolution{Domain: node, Nearest: node, Similarity: 1}
	}
	var meant []float64
	if near != nil {
		labels := make([]string, len(t.tokens))
		for i, l := range t.tokens {
			labels[i] = strings.Join(l.tokens, " ")
		}
		meant = near(strings.Join(words, " "), labels)
	}
	r := Resolution{Nearest: General}
	for i, l := range t.tokens {
		s := similarity(words, l.tokens)
		if i < len(meant) && meant[i] <= 1 { // false for what is no number
			s = max(s, meant[i])
		}
		if s > r.Similarity+1e-9 || s > r.Similarity-1e-9 && s > 0 && Depth(l.node) > Depth(r.Nearest) {
			r.Similarity, r.Nearest = s, l.node
		}
	}
	r.Similarity = choice.Round(r.Similarity)
	return r.decided()
}

// decided returns r with the domain that its similarity leads to.
func (r Resolution) decided() Resolution {
	r.Candidate = r.Similarity < Alias
	if r.Domain = r.Nearest; r.Similarity < BestEffort {
		r.Domain = General
	}
	return r
}

// Place returns what a candidate's name is now: as it was last resolved, by its meaning too,
// unless words alone bring it nearer to a node.
func (t *Tree) Place(c Candidate) Resolution {
	return t.Nearer(t.Resolve(c.Raw, nil), c)
}

// Nearer returns r, with the node that the candidate was nearest to if that is in the tree and
// nearer than r's.
func (t *Tree) Nearer(r Resolution, c Candidate) Resolution {
	if _, ok := t.nodes[c.Nearest]; ok && c.Similarity > r.Similarity {
		r.Nearest, r.Similarity = c.Nearest, c.Similarity
		return r.decided()
	}
	return r
}

// similarity returns the share of tokens that two names have in common.
func similarity(a, b []string) float64 {
	met := 0
	for _, w := range a {
		if slices.Contains(b, w) {
			met++
		}
	}
	return 2 * float64(met) / float64(len(a)+len(b))
}

// tokens returns the words of a name, folded, each once, at most 12.
func tokens(text string) []string {
	if len(text) > choice.MaxDomainName {
		text = strings.ToValidUTF8(text[:choice.MaxDomainName], "")
	}
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '+' && r != '#' }) {
		if !slices.Contains(out, w) && len(out) < 12 {
			out = append(out, w)
		}
	}
	return out
}

// Refine moves the probability of each domain to that of its descendants whose name or
// alias is in the question.
func (t *Tree) Refine(shares []choice.Share, question string) []choice.Share {
	if len(question) > maxQuestion {
		question = question[:maxQuestion]
	}
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(question), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '+' && r != '#' }) {
		words[w] = true
	}
	deepest := map[string]string{} // root → its deepest node that is named
	for _, l := range t.tokens {
		root := Root(l.node)
		if Depth(l.node) == 0 || Depth(l.node) <= Depth(deepest[root]) && deepest[root] != "" {
			continue
		}
		if slices.ContainsFunc(l.tokens, func(w string) bool { return !words[w] && w != root }) {
			continue
		}
		deepest[root] = l.node
	}
	out := slices.Clone(shares)
	for i := range out {
		if d := deepest[out[i].Domain]; d != "" {
			out[i].Domain = d
		}
	}
	return choice.Normal(out)
}

// A Candidate is a name that models use and that is no node's.
type Candidate struct {
	Raw        string    `json:"raw_string"`
	Nearest    string    `json:"nearest_node"`
	Similarity float64   `json:"similarity"`
	Count      int       `json:"query_count"`
	Models     []string  `json:"model_sources"`
	First      time.Time `json:"first_seen"`
	Last       time.Time `json:"last_seen"`
}

// Rules of promotion and retirement.
const (
	MinSightings = 5
	MinModels    = 2
	MinSide      = 10 // runs inside and outside of the candidate
	Retire       = 90 * 24 * time.Hour

	oneSided = 1.645 // standard errors: 95 %
)

// A Side is the evidence of one model inside of a candidate and in the rest of its
// nearest node.
type Side struct {
	Model  string
	In     choice.Evidence
	Others choice.Evidence
}

// Promote returns the node that a candidate becomes, and false while it does not: it
// needs MinSightings of MinModels, no node's name may cover it, and some model must do
// better or worse there than in the rest of the nearest node, by more than
// 0.10 + 0.05 · depth with one-sided confidence.
func (t *Tree) Promote(c Candidate, sides []Side) (Node, bool) {
	if c.Count < MinSightings || len(c.Models) < MinModels || len(t.nodes) >= MaxNodes {
		return Node{}, false
	}
	r := t.Place(c)
	if !r.Candidate {
		return Node{}, false
	}
	parent := r.Domain
	words := tokens(c.Raw)
	own := slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		return slices.Contains(strings.Split(parent, "."), w)
	})
	if len(own) == 0 || parent == General && r.Similarity == 0 && len(words) > 4 {
		return Node{}, false
	}
	id := parent + "." + slug(own)
	if _, exists := t.nodes[id]; exists || Depth(id) > MaxDepth {
		return Node{}, false
	}
	bar := 0.10 + 0.05*float64(Depth(id))
	for _, s := range sides {
		if s.In.Runs < MinSide || s.Others.Runs < MinSide {
			continue
		}
		if diverges(s) > bar {
			return Node{ID: id, Name: strings.Join(own, " "), Aliases: []string{strings.Join(words, " "), strings.Join(own, " ")}, Queries: c.Count, LastSeen: c.Last}, true
		}
	}
	return Node{}, false
}

// diverges returns the lower bound of the difference of a model's two rates.
func diverges(s Side) float64 {
	// one success and one failure are added to each side, so that a side without
	// failures is not taken for certain
	rate := func(e choice.Evidence) (p, v float64) {
		n := e.Runs + 2
		p = (e.Wins + 1) / n
		return p, p * (1 - p) / n
	}
	a, va := rate(s.In)
	b, vb := rate(s.Others)
	return math.Abs(a-b) - oneSided*math.Sqrt(va+vb)
}

func slug(words []string) string {
	s := strings.Join(words, "-")
	return strings.Trim(strings.ToValidUTF8(s[:min(len(s), 40)], ""), "-")
}

// Retired returns the nodes that had no sighting for Retire, the deepest first; what
// was theirs goes to their parents. Roots, and nodes with children that stay, stay.
func (t *Tree) Retired(now time.Time) []string {
	var out []string
	ids := t.IDs()
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(Depth(b), Depth(a)) })
	for _, id := range ids {
		if n := t.nodes[id]; IsRoot(id) || now.Sub(n.LastSeen) < Retire {
			continue
		}
		if !slices.ContainsFunc(t.Children(id), func(c string) bool { return !slices.Contains(out, c) }) {
			out = append(out, id)
		}
	}
	return out
}
