package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/live"
	"gatehouse/core"
	"gatehouse/core/sandbox"
)

// doctorWait bounds one question to a platform, a provider or the database.
const doctorWait = 15 * time.Second

// A doctorState says how a check ended.
type doctorState string

const (
	doctorOK   doctorState = "ok"
	doctorWarn doctorState = "warn" // works, but somebody should know
	doctorFail doctorState = "fail" // does not work
)

// A doctorCheck is one thing looked at: a sentence, and what to do about it.
type doctorCheck struct {
	Name  string      `json:"name"`
	State doctorState `json:"state"`
	Text  string      `json:"text"`
	Fix   string      `json:"fix,omitempty"`
}

// A doctorPatient is what is examined. Only Config or Fault is needed.
type doctorPatient struct {
	Config *configs.Config
	Fault  error // of configs.Load; then nothing else is looked at
	Clock  core.Clock

	Test    func(context.Context, configs.Bot) (username string, err error) // asks the platform; needed where there are bots
	Model   func(context.Context) (name string, err error)                  // one cheap call
	Serving func(context.Context) bool                                      // a gateway serves this vault now
	Limits  func(context.Context) string                                    // how the gateway that serves now limits commands, in words; "" not known
	Veil    func() sandbox.Backend                                          // whether the gateway's own files are hidden at full trust
	Sandbox func() []sandbox.Backend                                        // what isolates commands here
	Newest  int64                                                           // the newest database version this program knows
	Settled live.View                                                       // what was set in the panel, which Config holds; zero: nobody looked
}

// runDoctor looks at everything the gateway stands on, without changing any of
// it, and writes what it found. It reports whether nothing failed. No secret
// is written, whatever a platform's or a provider's error holds.
func runDoctor(ctx context.Context, out io.Writer, p doctorPatient, asJSON bool) (healthy bool) {
	checks := doctorExamine(ctx, p)
	healthy = true
	for _, c := range checks {
		healthy = healthy && c.State != doctorFail
	}
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		_ = enc.Encode(map[string]any{"healthy": healthy, "checks": checks})
		return healthy
	}
	doctorPrint(out, checks, healthy)
	return healthy
}

func doctorPrint(out io.Writer, checks []doctorCheck, healthy bool) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.State, c.Name, c.Text)
		if c.Fix != "" {
			fmt.Fprintf(w, "\t\tfix: %s\n", c.Fix)
		}
	}
	_ = w.Flush()
	if healthy {
		fmt.Fprintln(out, "\nNothing stands in the way of starting.")
		return
	}
	fmt.Fprintln(out, "\nSomething does not work. Mend what is marked fail, then run doctor again.")
}

func doctorExamine(ctx context.Context, p doctorPatient) []doctorCheck {
	if p.Fault != nil || p.Config == nil {
		return doctorFaults(p.Fault)
	}
	if p.Clock == nil {
		p.Clock = core.System{}
	}
	hide := doctorHide(p.Config)
	var checks []doctorCheck
	for _, examine := range []func(context.Context, doctorPatient) []doctorCheck{
		doctorConfiguration, doctorPanel, doctorVault, doctorDatabase, doctorRoom, doctorFiles, doctorBots, doctorModel, doctorAgents, doctorServers, doctorSandbox, doctorClock, doctorPorts,
	} {
		ctx, done := context.WithTimeout(ctx, doctorWait)
		for _, c := range examine(ctx, p) {
			c.Text, c.Fix = hide(c.Text), hide(c.Fix)
			checks = append(checks, c)
		}
		done()
	}
	return checks
}

// doctorHide takes the configuration's secrets out of a text and brings it to one line.
func doctorHide(c *configs.Config) func(string) string {
	pairs := []string{"\n", " ", "\t", " "}
	for _, s := range c.Secrets() {
		pairs = append(pairs, s.Reveal(), "[secret]")
	}
	return strings.NewReplacer(pairs...).Replace
}

func doctorFaults(fault error) []doctorCheck {
	var problems configs.Problems
	if !errors.As(fault, &problems) {
		return []doctorCheck{{Name: "configuration", State: doctorFail, Text: fmt.Sprint(fault)}}
	}
	var checks []doctorCheck
	for _, p := range problems {
		c := doctorCheck{Name: "configuration", State: doctorFail, Text: p.Name + ": " + p.Fault}
		if p.Example != "" {
			c.Fix = "for example " + p.Example
		}
		checks = append(checks, c)
	}
	return checks
}

// shortPassword is the length below which a password gets a warning.
const shortPassword = 12

// doctorConfiguration warns of settings that are allowed and seldom meant.
func doctorConfiguration(_ context.Context, p doctorPatient) []doctorCheck {
	c := p.Config
	var checks []doctorCheck
	warn := func(when bool, text, fix string) {
		if when {
			checks = append(checks, doctorCheck{"configuration", doctorWarn, text, fix})
		}
	}
	password := c.AdminPassword.Reveal()
	warn(password != "" && len(password) < shortPassword, "the admin password is short",
		fmt.Sprintf("set GATEHOUSE_ADMIN_PASSWORD to a phrase of %d characters or more", shortPassword))
	warn(c.LocalhostAccess == "chat" && len(c.TrustedProxies) > 0, "LOCALHOST_ACCESS=chat behind a proxy on this machine opens the chat to everybody the proxy lets in",
		"set GATEHOUSE_LOCALHOST_ACCESS=off and give out API keys")
	warn(c.AnthropicAPIKey.IsSet() && doctorInTheClear(c.AnthropicBaseURL), "the model's key goes over the network in the clear",
		"give GATEHOUSE_ANTHROPIC_BASE_URL an https address")
	warn(c.OpenaiAPIKey.IsSet() && doctorInTheClear(c.OpenaiBaseURL), "the model's key goes over the network in the clear",
		"give GATEHOUSE_OPENAI_BASE_URL an https address")
	if len(checks) > 0 {
		return checks
	}
	set := 0
	for _, s := range c.Redacted() {
		if s.Source != configs.SourceDefault {
			set++
		}
	}
	return []doctorCheck{{Name: "configuration", State: doctorOK, Text: doctorCount(set)}}
}

func doctorCount(set int) string {
	switch set {
	case 0:
		return "nothing is set, so every setting has its default"
	case 1:
		return "1 setting is set, the others have their defaults"
	}
	return fmt.Sprintf("%d settings are set, the others have their defaults", set)
}

// doctorInTheClear reports whether address is plain http to another machine.
func doctorInTheClear(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

func doctorModel(ctx context.Context, p doctorPatient) []doctorCheck {
	if p.Model == nil {
		return nil
	}
	name, err := p.Model(ctx)
	if err == nil {
		text := name + " answers"
		if strings.HasPrefix(name, "local/quote") {
			text = "no language model is configured; " + name + " answers by quoting files"
		}
		return []doctorCheck{{Name: "model", State: doctorOK, Text: text}}
	}
	return []doctorCheck{{"model", doctorFail, cmp.Or(name, p.Config.Model, "the model") + " does not answer: " + doctorReason(err),
		"check " + live.WhereSet(p.Config, "MODEL") + ", and the provider's key and address: GATEHOUSE_ANTHROPIC_API_KEY, GATEHOUSE_OPENAI_API_KEY, GATEHOUSE_OPENAI_BASE_URL"}}
}

// doctorReason is the sentence meant for people, else the whole error.
func doctorReason(err error) string {
	if core.KindOf(err) != core.Other {
		return core.TextOf(err)
	}
	return strings.ReplaceAll(err.Error(), ".: ", ": ") // a sentence with its cause behind it
}

const (
	skewWarn = 10 * time.Second // a Date header counts whole seconds, and the way takes time
	skewFail = 5 * time.Minute  // beyond this rate limits and expiries are wrong
)

// doctorClock holds our clock against the Date header of a server we use
// anyway (RFC 9110, section 6.6.1). Without such a server it says nothing.
func doctorClock(ctx context.Context, p doctorPatient) []doctorCheck {
	server := cmp.Or(p.Config.AnthropicBaseURL, p.Config.OpenaiBaseURL)
	if bots := p.bots(); len(bots) > 0 {
		server = bots[0].APIURL
	}
	if server == "" {
		return nil
	}
	c := doctorCheck{Name: "clock", State: doctorWarn, Fix: "turn on time synchronisation (timedatectl set-ntp true)"}
	theirs, err := doctorDate(ctx, server)
	if err != nil {
		c.Text, c.Fix = "could not be compared with "+server+": "+err.Error(), ""
		return []doctorCheck{c}
	}
	skew := p.Clock.Now().Sub(theirs).Abs()
	c.Text = fmt.Sprintf("%s away from the clock of %s", skew.Round(time.Second), server)
	switch {
	case skew > skewFail:
		c.State = doctorFail
	case skew <= skewWarn:
		c.State, c.Fix = doctorOK, ""
		c.Text = "agrees with the clock of " + server
	}
	return []doctorCheck{c}
}

func doctorDate(ctx context.Context, server string) (time.Time, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, server, nil)
	if err != nil {
		return time.Time{}, err
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	if err != nil {
		return time.Time{}, err
	}
	_ = res.Body.Close()
	date, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		return time.Time{}, errors.New("its answer has no date")
	}
	return date, nil
}

// doctorPorts takes each address for a moment, to see whether serve could.
func doctorPorts(ctx context.Context, p doctorPatient) []doctorCheck {
	var checks []doctorCheck
	for _, a := range []struct{ setting, addr string }{{"GATEHOUSE_ADDR", p.Config.Addr}, {"GATEHOUSE_METRICS_ADDR", p.Config.MetricsAddr}} {
		if a.addr == "" {
			continue
		}
		c := doctorCheck{Name: "port", State: doctorOK, Text: a.addr + " is free"}
		var listen net.ListenConfig
		l, err := listen.Listen(ctx, "tcp", a.addr)
		switch {
		case err == nil:
			_ = l.Close()
		case p.Serving != nil && p.Serving(ctx):
			c.Text = a.addr + " is held, and a gateway serves this vault"
		default:
			c.State, c.Text = doctorFail, a.addr+" cannot be taken: "+err.Error()
			c.Fix = "stop the program that holds it, or set " + a.setting + " to another address"
		}
		checks = append(checks, c)
	}
	return checks
}
