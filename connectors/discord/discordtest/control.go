package discordtest

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"gatehouse/core"
)

// The control interface plays people from another process: JSON over HTTP
// under /control/. Ids are strings. An error is {"error": "<words>"} with 400,
// 403, 404, 409 or 413.
//
//	GET  state                     bots, people, guilds, channels
//	POST users                     Account → Account
//	POST dms                       {from, bot} → {channel}
//	POST guilds                    {name, owner, members} → {guild}
//	POST channels                  {guild, name, type} → {channel}
//	POST threads                   {from, channel, message, name} → {channel}
//	POST posts                     {from, channel, name, …Outgoing} → {channel}
//	POST send                      {from, channel, …Outgoing} or an array of them → Message(s); no channel: the DM
//	POST edit                      {from, channel, message, text} → Message
//	POST delete                    {from, channel, message}
//	POST press                     {from, channel, message, data, values} → {interaction}
//	POST slash                     {from, channel, bot, name, options} → {interaction}
//	POST submit                    {from, interaction, fields} → {interaction}
//	POST react                     {from, channel, message, emoji, off}
//	POST typing                    {from, channel}
//	GET  history?channel=          Screen
//	GET  log?after=&method=        Requests
//	GET  gateway?after=&kind=      GatewayEvents
//	GET  events                    Changes as server-sent events
//	POST faults, DELETE faults     Fault; all
//	POST gateway                   {bot, do, code, text, on, delay, n, name, data}: do is drop, hangup, reconnect,
//	                               invalidate (on: resumable), ask, deafen, freeze, slow, shuffle, raw, dispatch, end
//	POST revoke                    {bot} → {token}
//	POST flood                     {on}
//
// "bot" is a bot's id, none the first one. It is for programs: a request with
// an Origin, or with a Host that is not loopback, comes by way of a browser and
// is refused.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if ip := net.ParseIP(host); r.Header.Get("Origin") != "" || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		control(w, nil, core.Errorf(core.Denied, "the control interface is not for browsers"))
		return
	}
	name := r.Method + " " + r.URL.Path[len("/control/"):]
	if name == "GET events" {
		s.serveEvents(w, r)
		return
	}
	do, ok := controls[name]
	if !ok {
		control(w, nil, core.Errorf(core.NotFound, "no control is called %q", name))
		return
	}
	o := &order{r: r}
	if r.Method == http.MethodPost {
		if err := o.read(w); err != nil {
			control(w, nil, err)
			return
		}
	}
	result, err := do(s, o)
	control(w, result, err)
}

// An order is one request of the control interface, with every field that any
// of them has.
type order struct {
	r       *http.Request
	raw     json.RawMessage
	From    ID                `json:"from"`
	Bot     ID                `json:"bot"`
	Guild   ID                `json:"guild"`
	Channel ID                `json:"channel"`
	Message ID                `json:"message"`
	Owner   ID                `json:"owner"`
	Members []ID              `json:"members"`
	Name    string            `json:"name"`
	Type    int               `json:"type"`
	Data    string            `json:"data"`
	Values  []string          `json:"values"`
	Options map[string]any    `json:"options"`
	Fields  map[string]string `json:"fields"`
	Emoji   string            `json:"emoji"`
	Off     bool              `json:"off"`
	On      bool              `json:"on"`
	Do      string            `json:"do"`
	Code    int               `json:"code"`
	N       int               `json:"n"`
	Delay   time.Duration     `json:"delay"` // nanoseconds
	Action  ID                `json:"interaction"`
	Outgoing
}

// read takes a body of at most 32 MB; an array stays raw.
func (o *order) read(w http.ResponseWriter) error {
	b, err := io.ReadAll(http.MaxBytesReader(w, o.r.Body, 32<<20))
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		return core.Errorf(core.TooLarge, "the body is larger than 32 MB")
	}
	o.raw = b
	if err == nil && len(b) > 0 && b[0] != '[' {
		err = json.Unmarshal(b, o)
	}
	if err != nil {
		return core.Errorf(core.Invalid, "the body does not fit: %v", err)
	}
	return nil
}

// control writes one answer of the control interface.
func control(w http.ResponseWriter, result any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		status := map[core.Kind]int{core.Invalid: 400, core.Denied: 403, core.NotFound: 404, core.Conflict: 409, core.TooLarge: 413, core.Busy: 503}[core.KindOf(err)]
		if status == 0 {
			status = 500
		}
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
		return
	}
	if result == nil {
		result = struct{}{}
	}
	json.NewEncoder(w).Encode(result)
}

// user finds the person who acts; with no channel it is their DM with the bot.
func (s *Server) user(o *order) (*User, error) {
	u := s.User(o.From)
	if u == nil {
		return nil, core.Errorf(core.NotFound, "no person has the id %s", o.From)
	}
	if o.Channel == 0 {
		b, err := s.findBot(o.Bot)
		if err != nil {
			return nil, err
		}
		o.Channel = u.With(b)
	}
	return u, nil
}

func (s *Server) findBot(id ID) (Bot, error) {
	if id == 0 {
		return s.Bot(), nil
	}
	if b := s.byBot[id]; b != nil {
		return Bot{s, b}, nil
	}
	return Bot{}, core.Errorf(core.NotFound, "no bot has the id %s", id)
}

// acts is a control in which a person does something.
func acts(f func(s *Server, u *User, o *order) (any, error)) func(*Server, *order) (any, error) {
	return func(s *Server, o *order) (any, error) {
		u, err := s.user(o)
		if err != nil {
			return nil, err
		}
		return f(s, u, o)
	}
}

func named(key string) func(id ID, err error) (any, error) {
	return func(id ID, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return map[string]ID{key: id}, nil
	}
}

var controls = map[string]func(*Server, *order) (any, error){
	"GET state":     (*Server).ctlState,
	"POST users":    (*Server).ctlUser,
	"POST guilds":   (*Server).ctlGuild,
	"POST channels": (*Server).ctlChannel,
	"POST send":     (*Server).ctlSend,
	"POST gateway":  (*Server).ctlGateway,
	"POST dms":      acts(func(_ *Server, _ *User, o *order) (any, error) { return named("channel")(o.Channel, nil) }),
	"POST threads": acts(func(_ *Server, u *User, o *order) (any, error) {
		return named("channel")(u.StartThread(o.Channel, o.Message, o.Name))
	}),
	"POST posts": acts(func(_ *Server, u *User, o *order) (any, error) {
		return named("channel")(u.NewPost(o.Channel, o.Name, o.Outgoing))
	}),
	"POST edit":   acts(func(_ *Server, u *User, o *order) (any, error) { return u.Edit(o.Channel, o.Message, o.Text) }),
	"POST delete": acts(func(_ *Server, u *User, o *order) (any, error) { return nil, u.Delete(o.Channel, o.Message) }),
	"POST press": acts(func(_ *Server, u *User, o *order) (any, error) {
		return named("interaction")(u.Press(o.Channel, o.Message, o.Data, o.Values...))
	}),
	"POST slash": acts(func(s *Server, u *User, o *order) (any, error) {
		b, err := s.findBot(o.Bot)
		if err != nil {
			return nil, err
		}
		return named("interaction")(u.SlashOf(b, o.Channel, o.Name, o.Options))
	}),
	"POST submit": acts(func(_ *Server, u *User, o *order) (any, error) {
		return named("interaction")(u.Submit(o.Action, o.Fields))
	}),
	"POST react": acts(func(_ *Server, u *User, o *order) (any, error) {
		return nil, u.react(o.Channel, o.Message, o.Emoji, !o.Off)
	}),
	"POST typing": acts(func(_ *Server, u *User, o *order) (any, error) { return nil, u.Type(o.Channel) }),
	"GET history": func(s *Server, o *order) (any, error) {
		id, err := ParseID(o.r.FormValue("channel"))
		if err != nil {
			return nil, err
		}
		return s.Screen(id), nil
	},
	"GET log": func(s *Server, o *order) (any, error) {
		return append([]Request{}, s.Requests(o.after(), o.r.FormValue("method"))...), nil
	},
	"GET gateway": func(s *Server, o *order) (any, error) {
		return append([]GatewayEvent{}, s.GatewayLog(o.after(), o.r.FormValue("kind"))...), nil
	},
	"POST faults": func(s *Server, o *order) (any, error) {
		var f Fault
		if err := json.Unmarshal(o.raw, &f); err != nil {
			return nil, core.Errorf(core.Invalid, "the body does not fit: %v", err)
		}
		_, err := s.Inject(f)
		return nil, err
	},
	"DELETE faults": func(s *Server, _ *order) (any, error) { s.ClearFaults(); return nil, nil },
	"POST flood":    func(s *Server, o *order) (any, error) { s.SetFlood(o.On); return nil, nil },
	"POST revoke": func(s *Server, o *order) (any, error) {
		b, err := s.findBot(o.Bot)
		if err != nil {
			return nil, err
		}
		return map[string]string{"token": b.Revoke()}, nil
	},
}

func (o *order) after() uint64 {
	n, _ := strconv.ParseUint(o.r.FormValue("after"), 10, 64)
	return n
}
