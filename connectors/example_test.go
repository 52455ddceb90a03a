package connectors_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"gatehouse/connectors"
	"gatehouse/core"
)

// A console is a platform of one chat: it receives the lines of a text, and prints
// what the bot sends.
type console struct{ lines string }

func (c *console) Name() string { return "console" }

// Run stores each line, as an update with an id of its own, and then waits for the
// end: a connector receives until ctx ends.
func (c *console) Run(ctx context.Context, in connectors.Inbox, report func(core.BotState)) error {
	report(core.BotState{State: core.Running})
	for n, line := range strings.Split(c.lines, "\n") {
		update := core.Inbound{
			UpdateID:  fmt.Sprint("line:", n),
			Address:   core.Address{Bot: c.Name(), Chat: "1"},
			Kind:      core.KindMessage,
			MessageID: fmt.Sprint(n),
			From:      core.Peer{Platform: "console", ID: "7", Name: "Ada"},
			Text:      line,
			Addressed: true,
		}
		if err := in.Put(ctx, []core.Inbound{update}, nil); err != nil {
			return err // the Hub calls Run again, after a pause
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func (c *console) Send(_ context.Context, out core.Outgoing) core.Delivery {
	fmt.Println("to chat", out.Chat+":", out.Text)
	return core.Delivery{Outcome: core.Sent, MessageID: "1"}
}

// An echo answers each message; the gateway's inbox is core/queue, which stores it.
type echo struct {
	hub  *connectors.Hub
	done sync.WaitGroup
}

func (i *echo) Put(ctx context.Context, page []core.Inbound, _ *core.Cursor) error {
	for _, in := range page {
		fmt.Println(in.From.Name, "writes:", in.Text)
		i.hub.Send(ctx, core.Outgoing{Address: in.Address, Part: core.Part{Text: strings.ToUpper(in.Text)}})
		i.done.Done()
	}
	return nil
}

// A Hub keeps connectors running: it passes what they receive to an Inbox, and what
// goes out to the connector of its bot.
func Example() {
	in := &echo{}
	in.done.Add(2)
	hub, err := connectors.NewHub(in, connectors.HubOptions{}, &console{lines: "hello\nhow are you?"})
	if err != nil {
		fmt.Println(err)
		return
	}
	in.hub = hub

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- hub.Run(ctx) }()
	in.done.Wait() // both messages are answered
	fmt.Println(hub.States()[0].State)
	cancel() // nothing is received from now on
	<-ended
	if err := hub.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Ada writes: hello
	// to chat 1: HELLO
	// Ada writes: how are you?
	// to chat 1: HOW ARE YOU?
	// running
}
