package sessions

import (
	"encoding/json"
	"net/http"
	"net/url"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/web"
	"gatehouse/web/auth"
)

func writeTags(w http.ResponseWriter, d session.Detail) error {
	return web.WriteJSON(w, http.StatusOK, map[string]any{"tags": d.Tags})
}

func writeContexts(w http.ResponseWriter, d session.Detail) error {
	return web.WriteJSON(w, http.StatusOK, map[string]any{"contexts": d.Contexts})
}

// show answers a GET of something that belongs to a session.
func (a *API) show(w http.ResponseWriter, r *http.Request, write func(http.ResponseWriter, session.Detail) error) error {
	_, d, err := a.Finder.Found(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	return write(w, d)
}

// edit changes something that hangs on a session, and shows it.
func (a *API) edit(w http.ResponseWriter, r *http.Request, what func() (session.Change, error), write func(http.ResponseWriter, session.Detail) error) error {
	p, d, err := a.Finder.Found(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	c, err := what()
	if err != nil {
		return err
	}
	if d, err = a.update(r, p, d.ID, c); err != nil {
		return err
	}
	return write(w, d)
}

// tags serves GET /api/chat/{id}/tags.
func (a *API) tags(w http.ResponseWriter, r *http.Request) error { return a.show(w, r, writeTags) }

// addTags serves POST /api/chat/{id}/tags.
func (a *API) addTags(w http.ResponseWriter, r *http.Request) error {
	return a.edit(w, r, func() (c session.Change, err error) {
		given, err := web.ReadFields(w, r)
		if err != nil {
			return c, err
		}
		var one string
		if value, there := given["tag"]; there && (json.Unmarshal(value, &one) != nil || one == "") {
			return c, web.FieldProblem(web.Invalid, "tag", "the field tag must be a string that is not empty")
		}
		if value, there := given["tags"]; there && json.Unmarshal(value, &c.AddTags) != nil {
			return c, web.FieldProblem(web.Invalid, "tags", "the field tags must be a list of strings")
		}
		if one != "" {
			c.AddTags = append(c.AddTags, one)
		}
		if len(c.AddTags) == 0 || len(c.AddTags) > 64 {
			return c, core.Errorf(core.Invalid, "give tag, or 1 to 64 tags")
		}
		delete(given, "tag")
		delete(given, "tags")
		web.WarnUnknown(w, given)
		return c, nil
	}, writeTags)
}

// removeTag serves DELETE /api/chat/{id}/tags/{tag}.
func (a *API) removeTag(w http.ResponseWriter, r *http.Request) error {
	return a.edit(w, r, func() (session.Change, error) {
		return session.Change{DropTags: []string{r.PathValue("tag")}}, nil
	}, writeTags)
}

// contexts serves GET /api/chat/{id}/contexts.
func (a *API) contexts(w http.ResponseWriter, r *http.Request) error {
	return a.show(w, r, writeContexts)
}

func (a *API) putContexts(w http.ResponseWriter, r *http.Request, into func(*session.Change, []string)) error {
	return a.edit(w, r, func() (c session.Change, err error) {
		given, err := web.ReadFields(w, r)
		if err != nil {
			return c, err
		}
		var paths []string
		if json.Unmarshal(given["contexts"], &paths) != nil || len(paths) > 100 {
			return c, web.FieldProblem(web.Invalid, "contexts", "the field contexts must be a list of at most 100 paths")
		}
		into(&c, paths)
		delete(given, "contexts")
		web.WarnUnknown(w, given)
		return c, nil
	}, writeContexts)
}

// setContexts serves PUT /api/chat/{id}/contexts.
func (a *API) setContexts(w http.ResponseWriter, r *http.Request) error {
	return a.putContexts(w, r, func(c *session.Change, paths []string) { c.SetContexts = &paths })
}

// addContexts serves POST /api/chat/{id}/contexts.
func (a *API) addContexts(w http.ResponseWriter, r *http.Request) error {
	return a.putContexts(w, r, func(c *session.Change, paths []string) { c.AddContexts = paths })
}

// removeContext serves DELETE /api/chat/{id}/contexts.
func (a *API) removeContext(w http.ResponseWriter, r *http.Request) error {
	return a.edit(w, r, func() (session.Change, error) {
		return session.Change{DropContext: []string{r.URL.Query().Get("path")}}, nil
	}, writeContexts)
}

// tagCounts serves GET /api/tags.
func (a *API) tagCounts(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	list, err := a.Reader.Tags(r.Context(), p.User, p.ReadsEveryone())
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"tags": list})
}

// byTag serves GET /api/tags/{tag}/sessions.
func (a *API) byTag(w http.ResponseWriter, r *http.Request) error {
	return a.some(w, r, "tag", r.PathValue("tag"), 128)
}

// byContext serves GET /api/contexts/sessions.
func (a *API) byContext(w http.ResponseWriter, r *http.Request) error {
	return a.some(w, r, "context", r.URL.Query().Get("path"), 1024)
}

// some lists the sessions with this tag or context.
func (a *API) some(w http.ResponseWriter, r *http.Request, by, value string, most int) error {
	p, err := auth.Require(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	if value == "" || len(value) > most {
		return core.Errorf(core.Invalid, "the %s has 1 to %d bytes", by, most)
	}
	v := url.Values{}
	for _, name := range []string{"limit", "cursor"} {
		if r.URL.Query().Has(name) {
			v.Set(name, r.URL.Query().Get(name))
		}
	}
	q, err := sessionQuery(v)
	if err != nil {
		return err
	}
	if by == "tag" {
		q.Tag = value
	} else {
		q.Context = value
	}
	return a.listed(w, r, p, q)
}
