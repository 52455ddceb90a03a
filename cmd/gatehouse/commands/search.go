package commands

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/core"
	"gatehouse/core/index/search"
	"gatehouse/core/project"
	"gatehouse/web/api/find"
)

// mostSearchPages is how many pages one search reads: a page may be short and still
// have a next one.
const mostSearchPages = 20

// A Search finds conversations and files of the vault.
type Search struct {
	Words   []string `arg:"" help:"Words that must occur. Also '\"two words\"' for a phrase, tag:garden, in:Notes and type:document, and after -- also -word to exclude one."`
	Type    []string `placeholder:"TYPE" help:"Only conversations (session), files (document) or entries of journals (journal)."`
	Folder  string   `placeholder:"FOLDER" help:"Only files in this folder of the vault and below it."`
	Project string   `placeholder:"PROJECT" help:"Only conversations of this project: the name of one of yours, or the id of anyone's."`
	Limit   int      `default:"20" help:"How many hits at most, up to 100."`
	JSON    bool     `help:"As JSON: the answer of GET /api/search."`
}

func (c *Search) Help() string {
	return "Prints the best passage of each conversation, of all users, of each file, and of each entry of a journal that has all words. 'gatehouse export ID' prints a conversation."
}

func (c *Search) Run(p *console.Process) error {
	if c.Limit < 1 || c.Limit > search.MaxLimit {
		return core.Errorf(core.Invalid, "--limit must be from 1 to %d", search.MaxLimit)
	}
	found, err := c.find(p)
	if err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(p.Stdout, found)
	}
	if len(found.Hits) == 0 {
		_, err := fmt.Fprintln(p.Stdout, "Nothing was found.")
		return err
	}
	for _, h := range found.Hits {
		if _, err := fmt.Fprint(p.Stdout, shownHit(h)); err != nil {
			return err
		}
	}
	if found.Next != "" && c.Limit < search.MaxLimit {
		fmt.Fprintf(p.Stderr, "There may be more: --limit shows up to %d.\n", search.MaxLimit)
	}
	return nil
}

// find returns up to c.Limit hits and the cursor of what follows them.
func (c *Search) find(p *console.Process) (all find.Page, err error) {
	q, err := p.Connect()
	if err != nil {
		return all, err
	}
	defer func() { _ = q.Close() }()
	query := url.Values{"q": {strings.Join(c.Words, " ")}, "type": c.Type}
	if c.Folder != "" {
		query.Set("folder", c.Folder)
	}
	if c.Project != "" {
		id, err := projectOf(q, c.Project)
		if err != nil {
			return all, err
		}
		query.Set("project", id)
	}
	all.Hits = []find.Hit{}
	for range mostSearchPages {
		var page find.Page
		query.Set("limit", strconv.Itoa(c.Limit-len(all.Hits)))
		if err := q.Do("GET", "/api/search?"+query.Encode(), nil, &page); err != nil {
			return all, err
		}
		all.Hits, all.Next = append(all.Hits, page.Hits...), page.Next
		if page.Next == "" || len(all.Hits) >= c.Limit {
			break
		}
		query.Set("cursor", page.Next)
	}
	return all, nil
}

// projectOf returns the id of the operator's project of a name, in any case; an id is itself.
func projectOf(q *console.Connection, name string) (string, error) {
	var res struct {
		Projects []project.Project `json:"projects"`
	}
	if err := q.Do("GET", "/api/projects", nil, &res); err != nil {
		return "", err
	}
	names := make([]string, len(res.Projects))
	for i, p := range res.Projects {
		if names[i] = core.CleanName(p.Name); strings.EqualFold(p.Name, name) || p.ID == name {
			return p.ID, nil
		}
	}
	if uuid.Validate(name) == nil {
		return name, nil
	}
	if len(names) == 0 {
		return "", core.Errorf(core.NotFound, "you have no project yet; /project NAME in a chat makes one")
	}
	return "", core.Errorf(core.NotFound, "you have no project %s; yours are %s", core.CleanName(name), strings.Join(names, ", "))
}

// shownHit returns the lines of a hit: where it is, its title and time, and the passage.
func shownHit(h find.Hit) string {
	at, when := h.ID, ""
	if h.Type != search.Session {
		at = fmt.Sprintf("%s:%d", strings.ReplaceAll(core.Visible(h.Path), "\n", `\u{A}`), h.Line)
	}
	if !h.At.IsZero() {
		when = "  " + h.At.Local().Format(console.Minute)
	}
	line := fmt.Sprintf("%s  %s%s\n", at, core.CleanName(h.Title), when)
	if h.Excerpt != "" {
		line += "    " + cleanLine(h.Excerpt) + "\n"
	}
	return line
}

// cleanLine returns hostile text of any length as core.CleanName does a name.
func cleanLine(text string) string {
	words := strings.Fields(text)
	for i, w := range words {
		words[i] = core.CleanName(w)
	}
	return strings.Join(words, " ")
}
