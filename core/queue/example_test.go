package queue_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/store"
)

// everyone admits each message at the trust of a guest.
type everyone struct{}

func (everyone) Admit(context.Context, *store.Tx, *core.Inbound) (a queue.Admission, err error) {
	a.Action, a.Trust = core.Run, core.Sandboxed
	return a, nil
}

func (e everyone) Claim(ctx context.Context, tx *store.Tx, in *core.Inbound) (queue.Admission, error) {
	return e.Admit(ctx, tx, in)
}
func (everyone) Prepare(context.Context, *store.Tx, *queue.Turn) error { return nil }
func (everyone) Ended(context.Context, *store.Tx, string) error        { return nil }

// echo answers each message with its text.
type echo struct{ q *queue.Queue }

func (e echo) Handle(ctx context.Context, t *queue.Turn) {
	reply := core.Reply{Address: t.First().Address, Key: "run:" + t.Run, Parts: []core.Part{{Text: "you wrote: " + t.First().Text}}}
	if err := e.q.Ack(ctx, t, queue.Result{Replies: []core.Reply{reply}}); err != nil {
		fmt.Println(err)
	}
}
func (echo) Behind(*core.Inbound, string, queue.Admission) {}
func (echo) Refused(*core.Inbound)                         {}

// printer is a platform that prints what is sent.
type printer struct{ sent chan struct{} }

func (printer) Wait(core.Address) time.Duration { return 0 }
func (printer) Repeats(string) time.Duration    { return 0 }
func (p printer) Send(_ context.Context, out core.Outgoing) core.Delivery {
	fmt.Printf("to %s: %s\n", out.Chat, out.Text)
	p.sent <- struct{}{}
	return core.Delivery{Outcome: core.Sent, MessageID: "1"}
}

// A message is put, claimed as a turn, and acknowledged with its reply, which
// the outbox sends. A repeat of the message is dropped.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	dir, err := os.MkdirTemp("", "queue")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	db, err := store.Open(ctx, filepath.Join(dir, "sessions.db"), store.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()

	out := outbox.New(db, outbox.Options{Node: "node"})
	q := queue.New(db, out, queue.Options{Node: "node", Lane: func(_ context.Context, _ *store.Tx, in *core.Inbound) (string, error) {
		return core.LaneOf(in.Address), nil
	}})
	platform := printer{make(chan struct{}, 10)}
	if err := q.TakeOver(ctx, []string{"bot"}, everyone{}, platform); err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error)
	go func() { served <- q.Serve(ctx, time.Minute, echo{q}) }()

	hello := core.Inbound{UpdateID: "1", Address: core.Address{Bot: "bot", Chat: "ann"}, Kind: core.KindMessage,
		MessageID: "1", From: core.Peer{Platform: "p", ID: "ann"}, Text: "hello", At: time.Now()}
	for range 2 { // the platform delivers it twice
		if err := q.Put(ctx, []core.Inbound{hello}, nil); err != nil {
			fmt.Println(err)
		}
	}
	<-platform.sent
	stop()
	fmt.Println(<-served)
	// Output:
	// to ann: you wrote: hello
	// <nil>
}
