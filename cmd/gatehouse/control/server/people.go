package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/core"
	"gatehouse/core/jobs"
	"gatehouse/core/session"
	"gatehouse/core/session/reindex"
	"gatehouse/core/store"
	"gatehouse/web"
)

// patience is how long a request for a job's state waits for its end.
const patience = time.Second

// maxPeople bounds the list of users.
const maxPeople = 1000

func (s *server) people(w http.ResponseWriter, r *http.Request) error {
	list, err := s.Users.Everyone(r.Context(), maxPeople)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, control.People{People: list, More: len(list) == maxPeople})
}

// refer answers with the user that ?ref= names.
func (s *server) refer(w http.ResponseWriter, r *http.Request) error {
	found, err := s.Users.Refer(r.Context(), s.DB, r.URL.Query().Get("ref"))
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, found)
}

func (s *server) person(w http.ResponseWriter, r *http.Request) error {
	p, err := s.Eraser.Person(r.Context(), r.PathValue("ref"))
	if err != nil {
		return err
	}
	out := control.Person{Sessions: len(p.Sessions)}
	for _, n := range p.Names {
		out.Names = append(out.Names, core.CleanName(n))
	}
	for _, id := range p.Identities {
		out.Names = append(out.Names, id.Platform+" "+core.CleanName(id.ID))
	}
	return web.WriteJSON(w, http.StatusOK, out)
}

func (s *server) exportPerson(w http.ResponseWriter, r *http.Request) error {
	ref := r.PathValue("ref")
	who, err := s.Users.Refer(r.Context(), s.DB, ref)
	switch stranger := strings.Contains(ref, ":"); { // one who was never let in has no number
	case err == nil:
		ref = strconv.FormatInt(who.User, 10)
	case core.KindOf(err) != core.NotFound || !stranger:
		return err
	}
	found, err := s.Eraser.Export(r.Context(), ref)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, found)
}

func (s *server) forget(w http.ResponseWriter, r *http.Request) error {
	key, err := s.Tasks.Forget(r.Context(), r.PathValue("ref"), control.By)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusAccepted, control.Job{Key: key})
}

func (s *server) reindex(w http.ResponseWriter, _ *http.Request) error {
	const key = "reindex"
	err := s.Jobs.Start(key, func(ctx context.Context, progress func(string)) (jobs.Result, error) {
		r, err := reindex.Run(ctx, reindex.Options{DB: s.DB, Vault: s.Vault, Sessions: s.Sessions, Log: s.Log, Owner: s.knowsOwner, Progress: func(r reindex.Progress) {
			progress(fmt.Sprintf("reindexing: %d files, %d conversations added", r.Transcripts+r.Sidecars, r.Added))
		}})
		return jobs.Result{Value: r}, err
	})
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusAccepted, control.Job{Key: key})
}

func (s *server) rebuild(w http.ResponseWriter, _ *http.Request) error {
	return s.long(w, "reindex_search", s.Rebuild)
}

func (s *server) retryVoice(w http.ResponseWriter, _ *http.Request) error {
	return s.long(w, "voice_retry", s.Retry)
}

func (s *server) rotateContentKey(w http.ResponseWriter, _ *http.Request) error {
	return s.long(w, "content_key", s.Rotate)
}

// long starts f as the job key, which runs once at a time.
func (s *server) long(w http.ResponseWriter, key string, f func(ctx context.Context, progress func(string)) (any, error)) error {
	err := s.Jobs.Start(key, func(ctx context.Context, progress func(string)) (jobs.Result, error) {
		r, err := f(ctx, progress)
		return jobs.Result{Value: r}, err
	})
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusAccepted, control.Job{Key: key})
}

func (s *server) job(w http.ResponseWriter, r *http.Request) error {
	st, err := s.Jobs.Wait(r.Context(), r.PathValue("key"), patience)
	if err == nil {
		err = st.Err
	}
	if err != nil {
		return err
	}
	out := control.JobState{Running: st.Running, Progress: st.Progress}
	if !st.Running {
		if out.Result, err = json.Marshal(st.Result.Value); err != nil {
			return err
		}
	}
	return web.WriteJSON(w, http.StatusOK, out)
}

// session returns the id of a conversation by the beginning of it.
func (s *server) session(w http.ResponseWriter, r *http.Request) error {
	sess, err := s.Sessions.Beginning(r.Context(), s.DB, r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, control.Session{ID: sess.ID})
}

func (s *server) rules(w http.ResponseWriter, r *http.Request) error {
	sess, err := s.Sessions.Beginning(r.Context(), s.DB, r.PathValue("id"))
	if err != nil {
		return err
	}
	grants, err := s.Grants.Grants(r.Context(), sess.ID, 0)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, control.SessionRules{Metadata: sess.Metadata, Grants: grants})
}

// knowsOwner reports whether the user that a sidecar names is the one with that
// number in this database: only if it is not younger than the session, since in a
// new database the numbers begin again.
func (s *server) knowsOwner(ctx context.Context, q store.Queryer, of session.Session) (bool, error) {
	since, ok, err := s.Users.Since(ctx, q, of.User)
	return ok && !since.After(of.CreatedAt), err
}
