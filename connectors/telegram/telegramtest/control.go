package telegramtest

import (
	"net/http"
	"strconv"

	"gatehouse/connectors/simulator"
	"gatehouse/core"
)

// The control interface plays users from another process: JSON over HTTP
// under /control/. An error is {"error": "<words>"} with 400, 403, 404 or 413.
//
//	GET  state                     bots, users, chats
//	POST users                     Account → Account
//	POST groups                    {kind, title, creator, members} → {chat}
//	POST topics                    {chat, by, name} → {thread}
//	POST send                      {from, bot, chat, …Outgoing} or an array of them → Message(s)
//	POST edit                      {from, bot, chat, message, text} → Message
//	POST press                     {from, bot, chat, message, data} → {query}
//	POST react                     {from, bot, chat, message, emoji}
//	POST block, unblock            {from}
//	POST member                    {chat, by, bot, status}
//	POST migrate                   {chat, by} → {chat}
//	GET  history?bot=&chat=        Screen
//	GET  log?after=&method=        Requests
//	GET  events                    Changes as server-sent events
//	POST faults, DELETE faults     Fault; all
//	POST inject                    {bot, raw} → {update_id}
//	POST idle-week                 {bot} → {}
//	POST revoke                    {bot} → {token}
//	POST flood                     {on}
//
// "bot" is a bot's id, 0 the first one where a bot is meant; "chat" 0 is the
// sender's private chat.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	simulator.ServeControl(w, r, func(name string) (any, error) {
		do, ok := controls[name]
		if !ok {
			return nil, core.Errorf(core.NotFound, "no control is called %q", name)
		}
		return do(s, w, r)
	})
}

var controls = map[string]func(*Server, http.ResponseWriter, *http.Request) (any, error){
	"GET state":      (*Server).ctlState,
	"POST users":     (*Server).ctlUser,
	"POST groups":    (*Server).ctlGroup,
	"POST topics":    (*Server).ctlTopic,
	"POST send":      (*Server).ctlSend,
	"POST edit":      (*Server).ctlEdit,
	"POST press":     (*Server).ctlPress,
	"POST react":     (*Server).ctlReact,
	"POST block":     (*Server).ctlBlock,
	"POST unblock":   (*Server).ctlUnblock,
	"POST member":    (*Server).ctlMember,
	"POST migrate":   (*Server).ctlMigrate,
	"GET history":    (*Server).ctlHistory,
	"GET log":        (*Server).ctlLog,
	"GET events":     (*Server).ctlEvents,
	"POST faults":    (*Server).ctlFault,
	"DELETE faults":  (*Server).ctlNoFaults,
	"POST inject":    (*Server).ctlInject,
	"POST idle-week": (*Server).ctlIdle,
	"POST revoke":    (*Server).ctlRevoke,
	"POST flood":     (*Server).ctlFlood,
}

// decode reads the body into v.
func decode(w http.ResponseWriter, r *http.Request, v any) error {
	b, err := simulator.ReadControl(w, r)
	if err != nil {
		return err
	}
	return simulator.DecodeControl(b, v)
}

// A target is who does something where.
type target struct {
	From    int64 `json:"from"`
	Message int   `json:"message"`
	Conversation
}

// resolve finds the user and the conversation meant.
func (s *Server) resolve(t target) (*User, Conversation, error) {
	u := s.User(t.From)
	if u == nil {
		return nil, Conversation{}, core.Errorf(core.NotFound, "no person has the id %d", t.From)
	}
	if t.Chat < 0 {
		return u, Conversation{Chat: t.Chat}, nil
	}
	b, err := s.findBot(t.Bot)
	if err != nil {
		return nil, Conversation{}, err
	}
	return u, u.With(b), nil
}

func (s *Server) findBot(id int64) (Bot, error) {
	if id == 0 {
		return s.Bot(), nil
	}
	if b := s.byBot[id]; b != nil {
		return Bot{s, b}, nil
	}
	return Bot{}, core.Errorf(core.NotFound, "no bot has the id %d", id)
}

func (s *Server) ctlState(http.ResponseWriter, *http.Request) (any, error) {
	out := struct {
		Bots  []Account `json:"bots"`
		Users []Account `json:"users"`
		Chats []Chat    `json:"chats"`
	}{Users: []Account{}, Chats: s.Chats()}
	for _, b := range s.Bots() {
		out.Bots = append(out.Bots, b.Account())
	}
	for _, u := range s.Users() {
		out.Users = append(out.Users, u.Account())
	}
	return out, nil
}

func (s *Server) ctlUser(w http.ResponseWriter, r *http.Request) (any, error) {
	var a Account
	if err := decode(w, r, &a); err != nil {
		return nil, err
	}
	u, err := s.AddUser(a)
	if err != nil {
		return nil, err
	}
	return u.Account(), nil
}

func (s *Server) ctlGroup(w http.ResponseWriter, r *http.Request) (any, error) {
	var v struct {
		Kind    GroupKind `json:"kind"`
		Title   string    `json:"title"`
		Creator int64     `json:"creator"`
		Members []int64   `json:"members"`
	}
	if err := decode(w, r, &v); err != nil {
		return nil, err
	}
	var members []*User
	for _, id := range v.Members {
		u := s.User(id)
		if u == nil {
			return nil, core.Errorf(core.NotFound, "no person has the id %d", id)
		}
		members = append(members, u)
	}
	g, err := s.AddGroup(v.Kind, v.Title, s.User(v.Creator), members...)
	if err != nil {
		return nil, err
	}
	return g.Conversation(), nil
}

// party reads {chat, by, …} into v and finds the group and the user.
func (s *Server) party(w http.ResponseWriter, r *http.Request, v interface{ who() (chat, by int64) }) (*Group, *User, error) {
	if err := decode(w, r, v); err != nil {
		return nil, nil, err
	}
	chat, by := v.who()
	g, u := s.Group(chat), s.User(by)
	if g == nil || u == nil {
		return nil, nil, core.Errorf(core.NotFound, "no such group or person")
	}
	return g, u, nil
}

type groupCall struct {
	Chat   int64  `json:"chat"`
	By     int64  `json:"by"`
	Name   string `json:"name"`
	Bot    int64  `json:"bot"`
	Status string `json:"status"`
}

func (c *groupCall) who() (chat, by int64) { return c.Chat, c.By }

func (s *Server) ctlTopic(w http.ResponseWriter, r *http.Request) (any, error) {
	var v groupCall
	g, u, err := s.party(w, r, &v)
	if err != nil {
		return nil, err
	}
	if thread := g.NewTopic(u, v.Name); thread != 0 {
		return map[string]int{"thread": thread}, nil
	}
	return nil, core.Errorf(core.Invalid, "this group is no forum")
}

func (s *Server) ctlMember(w http.ResponseWriter, r *http.Request) (any, error) {
	var v groupCall
	g, u, err := s.party(w, r, &v)
	if err != nil {
		return nil, err
	}
	b, err := s.findBot(v.Bot)
	if err != nil {
		return nil, err
	}
	switch v.Status {
	case "member", "administrator", "left", "kicked":
		g.SetBot(b, u, v.Status)
		return nil, nil
	}
	return nil, core.Errorf(core.Invalid, "no status is called %q", v.Status)
}

func (s *Server) ctlMigrate(w http.ResponseWriter, r *http.Request) (any, error) {
	var v groupCall
	g, u, err := s.party(w, r, &v)
	if err != nil {
		return nil, err
	}
	return g.Migrate(u).Conversation(), nil
}

func (s *Server) ctlHistory(_ http.ResponseWriter, r *http.Request) (any, error) {
	bot, _ := strconv.ParseInt(r.FormValue("bot"), 10, 64)
	chat, err := strconv.ParseInt(r.FormValue("chat"), 10, 64)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "which chat?")
	}
	if chat > 0 && bot == 0 {
		bot = s.Bot().Account().ID
	}
	return s.Screen(Conversation{bot, chat}), nil
}

func (s *Server) ctlLog(_ http.ResponseWriter, r *http.Request) (any, error) {
	after, _ := strconv.ParseUint(r.FormValue("after"), 10, 64)
	return append([]Request{}, s.Requests(after, r.FormValue("method"))...), nil
}
