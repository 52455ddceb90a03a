package operations

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
)

const botsPath = "/admin/bots"

// testTimeout bounds a test of a bot's credentials.
const testTimeout = 15 * time.Second

type botsBody struct {
	Bots []botCard
	Lede string
	CSRF string
}

type botCard struct {
	core.BotState
	CSRF string
	Tone string // good, warn, bad, idle: the colour of the label
	Word string
	Up   bool // it runs, or tries to
}

func (p *botPages) botsPage(w http.ResponseWriter, r *http.Request) error {
	states := p.states()
	b := botsBody{CSRF: page.Token(r), Lede: botsLede(states)}
	for _, s := range states {
		tone, word := page.State(s.State)
		up := s.State != core.Stopped && s.State != core.FailedPhase
		b.Bots = append(b.Bots, botCard{s, b.CSRF, tone, word, up})
	}
	return p.frame.Show(w, r, http.StatusOK, "bots", page.View{Title: "Bots", Topics: []core.Topic{core.TopicBots}, Every: 10, Body: b})
}

func botsLede(states []core.BotState) string {
	ill, off := unwell(states), stopped(states)
	up, rest := len(states)-len(ill)-len(off), ""
	if len(off) > 0 {
		rest = "; " + stoppedWords(off)
	}
	switch {
	case len(states) == 0:
		return "No bot is set up."
	case len(ill) == 1:
		_, word := page.State(ill[0].State)
		return ill[0].Bot + " needs a look: " + strings.ToLower(word) + "."
	case len(ill) > 0:
		return page.Count(len(ill), "bot needs", "bots need") + " a look."
	case up == 0:
		return "No bot runs" + rest + "."
	case starting(states) > 0:
		return page.Count(starting(states), "bot is", "bots are") + " starting" + rest + "."
	case up == 1 && len(off) == 0:
		return states[0].Bot + " is connected."
	case len(off) > 0:
		return page.Count(up, "bot is", "bots are") + " connected" + rest + "."
	case up == 2:
		return "Both bots are connected."
	}
	return "All " + page.Count(up, "bot is", "bots are") + " connected."
}

// starting returns how many bots are not connected yet.
func starting(states []core.BotState) (n int) {
	for _, s := range states {
		if s.State == core.Starting {
			n++
		}
	}
	return n
}

// stopped returns the bots that were stopped on purpose.
func stopped(states []core.BotState) (off []core.BotState) {
	for _, s := range states {
		if s.State == core.Stopped {
			off = append(off, s)
		}
	}
	return off
}

func stoppedWords(off []core.BotState) string {
	if len(off) == 1 {
		return off[0].Bot + " is stopped"
	}
	return page.Count(len(off), "bot is", "bots are") + " stopped"
}

// unwell returns the bots with a fault.
func unwell(states []core.BotState) []core.BotState {
	var ill []core.BotState
	for _, s := range states {
		if s.State != core.Running && s.State != core.Starting && s.State != core.Stopped {
			ill = append(ill, s)
		}
	}
	return ill
}

// act starts, stops or tests {bot}.
func (p *botPages) act(r *http.Request, by core.Actor) (page.Flash, string, error) {
	bot, back := r.PathValue("bot"), botsPath
	ctx, cancel := context.WithTimeout(r.Context(), testTimeout)
	defer cancel()
	switch r.PathValue("verb") {
	case "start":
		return page.Good(bot + " is starting; its state below follows."), back, p.noted(ctx, by, "bot.start", bot, p.o.Bots.Start(bot))
	case "stop":
		return page.Good(bot + " is stopped. What it had taken is still answered; the platform keeps what comes, for a day or so."), back, p.noted(ctx, by, "bot.stop", bot, p.o.Bots.Stop(bot))
	case "test":
		name, err := p.o.Bots.Test(ctx, bot)
		if err == nil {
			return page.Good(bot + " answers: the platform knows it as @" + strings.TrimPrefix(name, "@") + "."), back, nil
		}
		p.frame.Log.WarnContext(ctx, "bot test", "bot", bot, "err", err)
		if core.KindOf(err) == core.Other {
			err = core.Errorf(core.Busy, "%s returned no valid answer; see the log", bot)
		}
		return page.Flash{}, back, err
	}
	return page.Flash{}, back, core.Errorf(core.NotFound, "a bot can be started, stopped or tested")
}

// noted writes an act on a bot to the audit log, unless it failed.
func (p *botPages) noted(ctx context.Context, by core.Actor, did, bot string, err error) error {
	if err != nil || p.o.Audit == nil {
		return err
	}
	return p.o.Audit(ctx, by, did, bot)
}

func (p *botPages) answer() page.Answer {
	a := page.Answer{Key: "bots", Question: "Is every bot well?", Path: botsPath, Link: "Bots", Tone: "good"}
	states := p.states()
	ill, off := unwell(states), stopped(states)
	switch {
	case len(states) == 0:
		a.Answer, a.Tone, a.Short = "No bot is set up yet.", "warn", "no bot is set up yet"
		a.Detail = []page.Detail{{Text: "The page Bots shows how to add one."}}
		return a
	case len(off) == len(states):
		a.Answer, a.Tone, a.Short = "None runs: "+stoppedWords(off)+".", "warn", "no bot runs"
		return a
	case len(ill) == 0:
		a.Answer = "Yes. " + page.Count(len(states)-len(off), "bot runs.", "bots run.")
	default:
		a.Answer, a.Tone = "No. "+botsLede(states), "warn"
		a.Short = page.Count(len(ill), "bot needs", "bots need") + " a look"
	}
	for _, s := range append(ill, off...) {
		_, word := page.State(s.State)
		line := ": " + strings.ToLower(word)
		if s.Reason != "" {
			line += " – " + s.Reason
		}
		if s.State == core.FailedPhase {
			a.Tone = "bad"
		}
		acts := []page.Act{{Path: botsPath + "/" + url.PathEscape(s.Bot) + "/test", Label: "Test"}}
		if s.State == core.Stopped || s.State == core.FailedPhase {
			acts = append([]page.Act{{Path: botsPath + "/" + url.PathEscape(s.Bot) + "/start", Label: "Start", Main: s.State == core.FailedPhase}}, acts...)
		}
		a.Detail = append(a.Detail, page.Detail{ID: "bot-" + s.Bot, Who: s.Bot, Text: line, Acts: acts})
	}
	a.Detail = a.Detail[:min(len(a.Detail), 5)]
	return a
}
