// Package doctor checks everything that the gateway needs to start: settings,
// vault, database, platforms, model, sandbox, clock and ports. It changes nothing.
package doctor

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
	"gatehouse/core/agent"
	"gatehouse/core/sandbox"
	"gatehouse/core/tool/mcp/entry"
)

// Wait bounds one question to a platform, a provider or the database.
const Wait = 15 * time.Second

// A State is the result of a check.
type State string

const (
	OK   State = "ok"
	Warn State = "warn" // works, with a risk
	Fail State = "fail" // does not work
)

// A Finding is the result of a check: one sentence, and the remedy (Fix).
type Finding struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Text  string `json:"text"`
	Fix   string `json:"fix,omitempty"`
}

// A Subject is a gateway to examine. Only Config or Fault is required.
type Subject struct {
	Config *configs.Config
	Fault  error  // of configs.Load; then nothing else is checked
	Unread string // a file of settings that is there and was not read; "" where there is none
	Clock  core.Clock

	Test        func(context.Context, configs.Bot) (username string, err error) // asks the platform; needed where there are bots
	ModelFaults func(*agent.Agents) []string                                    // lines about agents and workspaces whose model is not configured; nil: not checked
	Model       func(context.Context) (name string, err error)                  // one cheap call
	Serving     func(context.Context) bool                                      // a gateway serves this vault now
	Limits      func(context.Context) string                                    // how the gateway that serves now limits commands, as text; "" not known
	Servers     func(context.Context) []entry.State                             // MCP servers as the gateway that serves now has them; nil, or none: not known
	Veil        func() sandbox.Backend                                          // whether the gateway's own files are hidden at full trust
	Sandbox     func() []sandbox.Backend                                        // what isolates commands here
	Newest      int64                                                           // the newest database version this program knows
	Settled     live.View                                                       // what was set in the panel, which Config holds; zero: not read
}

// Run runs all checks, writes their findings to out and reports whether none
// failed. It writes no secret, even if an error of a platform or provider
// contains one.
func Run(ctx context.Context, out io.Writer, p Subject, asJSON bool) (healthy bool) {
	checks := examineAll(ctx, p)
	healthy = true
	for _, c := range checks {
		healthy = healthy && c.State != Fail
	}
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		_ = enc.Encode(map[string]any{"healthy": healthy, "checks": checks})
		return healthy
	}
	printText(out, checks, healthy)
	return healthy
}

func printText(out io.Writer, checks []Finding, healthy bool) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.State, c.Name, c.Text)
		if c.Fix != "" {
			fmt.Fprintf(w, "\t\tfix: %s\n", c.Fix)
		}
	}
	_ = w.Flush()
	if healthy {
		fmt.Fprintln(out, "\nThe gateway can start.")
		return
	}
	fmt.Fprintln(out, "\nSomething does not work. Fix what is marked fail, then run doctor again.")
}

// A check examines one subject and returns its findings; none if it does not apply.
type check func(context.Context, Subject) []Finding

// checks are all checks, in the order of the report.
var checks = []check{
	checkConfiguration, checkPanel, checkVault, checkNames, checkElsewhere, checkDatabase, checkAttachments, checkFiles, checkBots,
	checkModel, checkEmbedding, checkVoice, checkAgents, checkServers, checkSandbox, checkClock, checkPorts,
}

// examineAll returns the findings of all checks, or the faults of the
// configuration alone where it cannot be used.
func examineAll(ctx context.Context, p Subject) []Finding {
	if p.Fault != nil || p.Config == nil {
		return configurationFaults(p.Fault)
	}
	if p.Clock == nil {
		p.Clock = core.System{}
	}
	hide := redact(p.Config)
	var findings []Finding
	for _, run := range checks {
		ctx, done := context.WithTimeout(ctx, Wait)
		for _, f := range run(ctx, p) {
			f.Text, f.Fix = hide(f.Text), hide(f.Fix)
			findings = append(findings, f)
		}
		done()
	}
	return findings
}

// redact returns a function that removes the secrets of c and the line breaks from a text.
func redact(c *configs.Config) func(string) string {
	pairs := []string{"\n", " ", "\t", " "}
	for _, s := range c.Secrets() {
		pairs = append(pairs, s.Reveal(), "[secret]")
	}
	return strings.NewReplacer(pairs...).Replace
}

func configurationFaults(fault error) []Finding {
	var problems configs.Problems
	if !errors.As(fault, &problems) {
		return []Finding{{Name: "configuration", State: Fail, Text: fmt.Sprint(fault)}}
	}
	var checks []Finding
	for _, p := range problems {
		c := Finding{Name: "configuration", State: Fail, Text: p.Name + ": " + p.Fault}
		if p.Example != "" {
			c.Fix = "for example " + p.Example
		}
		checks = append(checks, c)
	}
	return checks
}

// MinPassword is the number of characters below which a password gets a warning.
const MinPassword = 12

// checkConfiguration warns about settings that are allowed and seldom meant.
func checkConfiguration(_ context.Context, p Subject) []Finding {
	c := p.Config
	var checks []Finding
	warn := func(when bool, text, fix string) {
		if when {
			checks = append(checks, Finding{"configuration", Warn, text, fix})
		}
	}
	set := 0
	for _, s := range c.Redacted() {
		if s.Source != configs.SourceDefault {
			set++
		}
	}
	warn(set == 0 && p.Unread != "", "no setting is set, and the file "+p.Unread+" was not read", "name it: gatehouse doctor --env-file "+p.Unread)
	password := c.AdminPassword.Reveal()
	warn(password != "" && len(password) < MinPassword, "the admin password is short",
		fmt.Sprintf("set GATEHOUSE_ADMIN_PASSWORD to a phrase of %d characters or more", MinPassword))
	warn(c.LocalhostAccess == "chat" && len(c.TrustedProxies) > 0, "LOCALHOST_ACCESS=chat behind a proxy on this machine opens the chat to everyone the proxy admits",
		"set GATEHOUSE_LOCALHOST_ACCESS=off and give out API keys")
	warn(c.AnthropicAPIKey.IsSet() && inTheClear(c.AnthropicBaseURL), "the model's key goes over the network in the clear",
		"give GATEHOUSE_ANTHROPIC_BASE_URL an https address")
	warn(c.OpenaiAPIKey.IsSet() && inTheClear(c.OpenaiBaseURL), "the model's key goes over the network in the clear",
		"give GATEHOUSE_OPENAI_BASE_URL an https address")
	if len(checks) > 0 {
		return checks
	}
	return []Finding{{Name: "configuration", State: OK, Text: settingCount(set)}}
}

func settingCount(set int) string {
	switch set {
	case 0:
		return "no setting is set, so the defaults apply"
	case 1:
		return "1 setting is set, the others have their defaults"
	}
	return fmt.Sprintf("%d settings are set, the others have their defaults", set)
}

// inTheClear reports whether address is plain http to another machine.
func inTheClear(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

func checkModel(ctx context.Context, p Subject) []Finding {
	if p.Model == nil {
		return nil
	}
	name, err := p.Model(ctx)
	if err == nil {
		text := name + " answers"
		if strings.HasPrefix(name, "local/quote") {
			text = "no language model is configured; " + name + " answers by quoting files"
		}
		return []Finding{{Name: "model", State: OK, Text: text}}
	}
	return []Finding{{"model", Fail, cmp.Or(name, p.Config.Model, "the model") + " does not answer: " + Reason(err),
		"check " + live.WhereSet(p.Config, "MODEL") + ", and the provider's key and address: GATEHOUSE_ANTHROPIC_API_KEY, GATEHOUSE_OPENAI_API_KEY, GATEHOUSE_OPENAI_BASE_URL, GATEHOUSE_PROVIDERS_FILE"}}
}

// Reason returns the sentence of err that is written for users, or the whole error.
func Reason(err error) string {
	if core.KindOf(err) != core.Other {
		return core.TextOf(err)
	}
	return strings.ReplaceAll(err.Error(), ".: ", ": ") // a sentence with its cause behind it
}

const (
	skewWarn = 10 * time.Second // a Date header counts whole seconds, and the way takes time
	skewFail = 5 * time.Minute  // beyond this rate limits and expiries are wrong
)

// checkClock compares the clock with the Date header of a server that the
// gateway uses anyway (RFC 9110, section 6.6.1); without one it reports nothing.
func checkClock(ctx context.Context, p Subject) []Finding {
	server := cmp.Or(p.Config.AnthropicBaseURL, p.Config.OpenaiBaseURL)
	if bots := p.bots(); len(bots) > 0 {
		server = bots[0].APIURL
	}
	if server == "" {
		return nil
	}
	c := Finding{Name: "clock", State: Warn, Fix: "turn on time synchronisation (timedatectl set-ntp true)"}
	theirs, err := serverDate(ctx, server)
	if err != nil {
		c.Text, c.Fix = "could not be compared with "+server+": "+err.Error(), ""
		return []Finding{c}
	}
	skew := p.Clock.Now().Sub(theirs).Abs()
	c.Text = fmt.Sprintf("%s away from the clock of %s", skew.Round(time.Second), server)
	switch {
	case skew > skewFail:
		c.State = Fail
	case skew <= skewWarn:
		c.State, c.Fix = OK, ""
		c.Text = "agrees with the clock of " + server
	}
	return []Finding{c}
}

func serverDate(ctx context.Context, server string) (time.Time, error) {
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

// checkPorts listens on each address briefly to see whether serve could.
func checkPorts(ctx context.Context, p Subject) []Finding {
	var checks []Finding
	for _, a := range []struct{ setting, addr string }{{"GATEHOUSE_ADDR", p.Config.Addr}, {"GATEHOUSE_METRICS_ADDR", p.Config.MetricsAddr}} {
		if a.addr == "" {
			continue
		}
		c := Finding{Name: "port", State: OK, Text: a.addr + " is free"}
		var listen net.ListenConfig
		l, err := listen.Listen(ctx, "tcp", a.addr)
		switch {
		case err == nil:
			_ = l.Close()
		case p.Serving != nil && p.Serving(ctx):
			c.Text = a.addr + " is held, and a gateway serves this vault"
		case gatewayAt(ctx, p.Config.Addr):
			c.State, c.Text = Fail, a.addr+" cannot be taken: a gateway answers on "+p.Config.Addr+", of another user or with another vault"
			c.Fix = "if it is the one to examine, run doctor as its user and with its settings (systemd: sudo gatehousectl doctor); else stop it, or set " + a.setting + " to another address"
		default:
			c.State, c.Text = Fail, a.addr+" cannot be taken: "+err.Error()
			c.Fix = "stop the program that holds it, or set " + a.setting + " to another address"
		}
		checks = append(checks, c)
	}
	return checks
}
