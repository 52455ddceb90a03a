package discordtest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"gatehouse/connectors/simulator"
	"gatehouse/core"
)

// The control interface plays users from another process: JSON over HTTP
// under /control/. Ids are strings. An error is {"error": "<words>"} with 400,
// 403, 404, 409 or 413.
//
//	GET  state                     bots, users, guilds, channels
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
// "bot" is a bot's id, none the first one.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	simulator.ServeControl(w, r, func(name string) (any, error) {
		do, ok := controls[name]
		if !ok {
			return nil, core.Errorf(core.NotFound, "no control is called %q", name)
		}
		o := &order{r: r}
		if r.Method == http.MethodPost {
			if err := o.read(w); err != nil {
				return nil, err
			}
		}
		return do(s, o)
	})
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

// read takes the body; an array stays raw.
func (o *order) read(w http.ResponseWriter) (err error) {
	if o.raw, err = simulator.ReadControl(w, o.r); err != nil || len(o.raw) == 0 || o.raw[0] == '[' {
		return err
	}
	return simulator.DecodeControl(o.raw, o)
}

// user finds the user who acts; with no channel it is their DM with the bot.
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

// acts returns a control in which a user does something.
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
		if err := simulator.DecodeControl(o.raw, &f); err != nil {
			return nil, err
		}
		_, err := s.Inject(f)
		return nil, err
	},
	"GET events":    func(s *Server, _ *order) (any, error) { return http.HandlerFunc(s.ServeEvents), nil },
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
