package connectorstest

import (
	"fmt"

	"gatehouse/connectors"
	"gatehouse/core"
)

func choices(b *bench) {
	b.meet()
	part := core.Part{Text: "Which?"}
	for i := range 20 {
		part.Buttons = append(part.Buttons, []core.Button{{Label: fmt.Sprint("Choice ", i), Data: fmt.Sprintf("aaaabbbbccccdddd:%d", i)}})
	}
	part.Buttons = append(part.Buttons, []core.Button{{Label: "Other…", Data: "aaaabbbbccccdddd:form", Form: true}})
	if d := b.send(b.dm, "", part); d.Outcome != core.Sent {
		b.Errorf("delivery %+v", d)
	}
	b.seen(b.dm, "Which?")
}

func preview(b *bench) {
	p, ok := b.conn.(connectors.Previewer)
	if !ok {
		b.Skip("has no previews")
	}
	b.meet()
	b.start()
	b.await(core.Running)
	b.p.SayThere("hello")
	for _, to := range []core.Address{b.dm, b.thread} {
		id, err := p.Preview(b.Context(), to, "", core.Part{Text: "the ans"})
		if err != nil {
			b.Fatal(err)
		}
		if id2, err := p.Preview(b.Context(), to, id, core.Part{Text: "the answer i"}); err != nil || id2 != id {
			b.Fatalf("second preview: %q, %v; the first was %q", id2, err, id)
		}
		if d := b.send(to, id, core.Part{Text: "the answer is 42"}); d.Outcome != core.Sent || d.MessageID == "" || id != "" && d.MessageID != id {
			b.Errorf("final: %+v", d)
		}
		b.seen(to, "the answer is 42")
		if d := b.send(to, id, core.Part{Text: "the answer is 42"}); id != "" && d.Outcome != core.Sent {
			b.Errorf("the same edit again: %+v", d)
		}
	}
}

func typing(b *bench) {
	ty, ok := b.conn.(connectors.Typer)
	if !ok {
		b.Skip("can't type")
	}
	b.meet()
	if err := ty.Typing(b.Context(), b.dm); err != nil {
		b.Fatal(err)
	}
	if !b.p.Typing(b.dm) {
		b.Error("the person does not see it")
	}
}
