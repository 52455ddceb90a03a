package discordtest

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A route is one endpoint: its name is that of the documentation, in camel
// case, and what faults and the log call it.
type route struct {
	name    string
	method  string
	path    []string // "{name}" is a variable
	open    bool     // no Authorization
	ids     bool     // its braces hold snowflakes
	bucket  bool     // a rate limit of its own, by limit and per
	limit   int
	per     time.Duration
	noGlobe bool // [limits] "Interaction endpoints are not bound to the bot's Global Rate Limit"
	do      func(*Server, *call) (any, *apiError)
}

// A call is one request to a route, read and authorised.
type call struct {
	ctx    context.Context
	route  *route
	bot    *bot
	args   map[string]string
	query  url.Values
	f      *form
	now    time.Time
	status int // of success; 200 when 0
	made   ID  // the message that was made, edited or deleted
}

// id returns a variable of the path that was checked to be a snowflake.
func (c *call) id(name string) ID {
	id, _ := ParseID(c.args[name])
	return id
}

// routes is what this platform can do. Bucket sizes are ours where the
// documentation has none: "rate limits should not be hard coded" ([limits]).
// 5 in 5 s for messages is what bots observe [practice], 5 in 1 s for deletes
// is quoted in [docs#8330]; the others are ours.
var routes = func() []*route {
	var list []*route
	add := func(name, endpoint string, limit int, per time.Duration, do func(*Server, *call) (any, *apiError)) *route {
		method, path, _ := strings.Cut(endpoint, " ")
		r := &route{name: name, method: method, path: strings.Split(path, "/"), ids: true, bucket: limit > 0, limit: limit, per: per, do: do}
		list = append(list, r)
		return r
	}
	sec := time.Second
	add("getGateway", "GET gateway", 0, 0, (*Server).getGateway).open = true
	add("getGatewayBot", "GET gateway/bot", 2, 5*sec, (*Server).getGatewayBot)
	add("getCurrentUser", "GET users/@me", 5, 5*sec, (*Server).getMe)
	add("getCurrentUserGuilds", "GET users/@me/guilds", 5, 5*sec, (*Server).getMyGuilds)
	add("createDM", "POST users/@me/channels", 10, 10*sec, (*Server).createDM)
	add("getUser", "GET users/{user}", 30, 30*sec, (*Server).getUser)
	add("getCurrentApplication", "GET applications/@me", 5, 5*sec, (*Server).getApplication)
	add("getCurrentApplication", "GET oauth2/applications/@me", 5, 5*sec, (*Server).getApplication)
	add("getCommands", "GET applications/{app}/commands", 5, 20*sec, (*Server).getCommands)
	add("overwriteCommands", "PUT applications/{app}/commands", 5, 20*sec, (*Server).overwriteCommands)
	add("getCommands", "GET applications/{app}/guilds/{guild}/commands", 5, 20*sec, (*Server).getCommands)
	add("overwriteCommands", "PUT applications/{app}/guilds/{guild}/commands", 5, 20*sec, (*Server).overwriteCommands)
	add("getGuild", "GET guilds/{guild}", 5, 5*sec, (*Server).getGuild)
	add("getGuildChannels", "GET guilds/{guild}/channels", 5, 5*sec, (*Server).getGuildChannels)
	add("getActiveThreads", "GET guilds/{guild}/threads/active", 5, 5*sec, (*Server).getActiveThreads)
	add("getChannel", "GET channels/{channel}", 5, 5*sec, (*Server).getChannel)
	add("modifyChannel", "PATCH channels/{channel}", 5, 10*sec, (*Server).modifyChannel)
	add("getMessages", "GET channels/{channel}/messages", 5, 5*sec, (*Server).getMessages)
	add("createMessage", "POST channels/{channel}/messages", 5, 5*sec, (*Server).createMessage)
	add("getMessage", "GET channels/{channel}/messages/{message}", 5, 5*sec, (*Server).getMessage)
	add("editMessage", "PATCH channels/{channel}/messages/{message}", 5, 5*sec, (*Server).editMessage)
	add("deleteMessage", "DELETE channels/{channel}/messages/{message}", 5, sec, (*Server).deleteMessage)
	add("startThread", "POST channels/{channel}/messages/{message}/threads", 10, 10*sec, (*Server).startThreadFrom)
	add("createReaction", "PUT channels/{channel}/messages/{message}/reactions/{emoji}/@me", 1, sec/4, (*Server).createReaction)
	add("deleteReaction", "DELETE channels/{channel}/messages/{message}/reactions/{emoji}/@me", 1, sec/4, (*Server).deleteReaction)
	add("triggerTyping", "POST channels/{channel}/typing", 5, 5*sec, (*Server).triggerTyping)
	hook := func(name, endpoint string, limit int, do func(*Server, *call) (any, *apiError)) {
		r := add(name, endpoint, limit, 2*sec, do)
		r.open, r.noGlobe, r.ids = true, true, false
	}
	hook("createResponse", "POST interactions/{interaction}/{token}/callback", 0, (*Server).createResponse)
	hook("createFollowup", "POST webhooks/{app}/{token}", 5, (*Server).createFollowup)
	hook("getResponse", "GET webhooks/{app}/{token}/messages/{message}", 5, (*Server).getResponse)
	hook("editResponse", "PATCH webhooks/{app}/{token}/messages/{message}", 5, (*Server).editResponse)
	hook("deleteResponse", "DELETE webhooks/{app}/{token}/messages/{message}", 5, (*Server).deleteResponse)
	return list
}()

// find looks a path up; the route is nil when no path matches, and the second
// result means that one does for another method.
func find(method, path string) (r *route, args map[string]string, other bool) {
	parts := strings.Split(path, "/")
	for _, r := range routes {
		args, ok := r.match(parts)
		if !ok {
			continue
		}
		if r.method == method {
			return r, args, false
		}
		other = true
	}
	return nil, nil, other
}

func (r *route) match(parts []string) (map[string]string, bool) {
	if len(parts) != len(r.path) {
		return nil, false
	}
	args := map[string]string{}
	for i, want := range r.path {
		switch {
		case strings.HasPrefix(want, "{"):
			args[strings.Trim(want, "{}")] = parts[i]
		case want != parts[i]:
			return nil, false
		}
	}
	return args, true
}

// serveAPI answers one REST request: log, faults, and between them the platform.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request, rest string) {
	version, path, _ := strings.Cut(rest, "/")
	began := s.clock.Now()
	rt, args, other := find(r.Method, path)
	entry := Request{At: began, Verb: r.Method, Path: path}
	if rt != nil {
		entry.Method = rt.name
	}
	x, ok := s.Begin(w, r, entry.Method, func(outcome string) {
		entry.Outcome = outcome
		s.record(entry)
	})
	if !ok {
		return
	}
	c := &call{ctx: r.Context(), route: rt, args: args, query: r.URL.Query()}
	a := s.handle(w, r, c, version, other)
	entry.Status, entry.MessageID, entry.Took = a.Status, c.made, s.clock.Now().Sub(began)
	if c.bot != nil {
		entry.Bot = c.bot.account.ID
	}
	if c.f != nil {
		entry.Params = c.f.fields
	}
	if a.Status >= 400 {
		entry.Error = string(a.Body)
	}
	x.End(a)
}

// handle returns the platform without faults: proxy, token, limits, body, method.
func (s *Server) handle(w http.ResponseWriter, r *http.Request, c *call, version string, other bool) answer {
	a, over := s.admit(r, c, version, other)
	if over {
		return a
	}
	f, fault := readForm(w, r)
	limits := a.Header
	switch {
	case fault != nil:
		a = failed(fault)
	default:
		c.f = f
		a = s.run(c)
	}
	if a.Header == nil {
		a.Header = http.Header{}
	}
	for k, v := range limits {
		a.Header[k] = v
	}
	s.count(a)
	return a
}

// admit checks what comes before the body, and spends from the rate limits.
func (s *Server) admit(r *http.Request, c *call, version string, other bool) (answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.now = s.clock.Now()
	if wait := s.bannedUntil.Sub(c.now); wait > 0 {
		return banned(wait), true
	}
	refuse := func(e *apiError) (answer, bool) {
		a := failed(e)
		s.countLocked(a)
		return a, true
	}
	switch {
	case !strings.HasPrefix(r.UserAgent(), "DiscordBot ("): // [reference] "User Agent": "may be blocked"
		return refuse(errUserAgent)
	case version != "v9" && version != "v10": // [reference] "API Versions": older ones are deprecated
		return refuse(errVersion)
	case c.route == nil && other:
		return refuse(errMethod)
	case c.route == nil:
		return refuse(errNotFound)
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bot ")
	c.bot = s.byToken[token]
	if (!ok || c.bot == nil) && !c.route.open {
		return refuse(errUnauthorized)
	}
	header, fault := s.spend(c)
	if fault != nil {
		a := failed(fault)
		for k, v := range header {
			a.Header[k] = v
		}
		s.countLocked(a)
		return a, true
	}
	return answer{Header: header}, false
}

// run finds the arguments and calls the method. Every method runs, and its
// result is written, under the lock.
func (s *Server) run(c *call) answer {
	if c.route.ids {
		bad := &form{}
		for name, text := range c.args {
			if name != "emoji" {
				bad.snowflake(name+"_id", text)
			}
		}
		if fault := bad.check(); fault != nil {
			return failed(fault)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.now = s.clock.Now()
	result, fault := c.route.do(s, c)
	if fault != nil {
		return failed(fault)
	}
	if c.method() != http.MethodGet {
		s.Touch()
	}
	return succeeded(max(c.status, 200), result)
}

func (c *call) method() string { return c.route.method }
