package embedding

import (
	"context"
	"errors"

	"gatehouse/core/index/document"
	"gatehouse/core/index/search"
	"gatehouse/core/llm/embed"
)

// probe is what any model embeds: when it fails, the server does, and not on a text.
const probe = "text"

// shorter are the bytes to which a passage is cut on which the model fails alone: it may
// be too long for it.
var shorter = [...]int{4 << 10, 1 << 10}

// embed has passages embedded. Where the server refuses them together, or fails for the
// second time, and embeds a probe, they are tried in halves and one by one; those on which
// it fails alone are stored without a vector, and tried again after the next start or a day.
func (e *Embedder) embed(ctx context.Context, list []document.Passage) error {
	again := e.failing == list[0].N
	if again {
		if err := e.probe(ctx); err != nil {
			return err
		}
	}
	err := e.together(ctx, list, maxText)
	if !ofTexts(err) {
		e.failing = 0
		return err
	}
	if !again && !refused(err) {
		e.failing = list[0].N
		return err
	}
	e.failing = 0
	if !again {
		if err := e.probe(ctx); err != nil {
			return err
		}
	}
	bad, fault := e.apart(ctx, list)
	if fault != nil {
		return fault
	}
	if len(bad) > 0 {
		e.bad, e.why = e.bad+len(bad), err
	}
	return e.o.Library.Embed(ctx, e.current().ID, bad, make([][]float32, len(bad)))
}

// report logs how many passages the model has failed on since the last report.
func (e *Embedder) report() {
	if e.bad > 0 {
		e.o.Log.Warn("passages on which the model fails are not embedded until tomorrow, and found by their words alone", "passages", e.bad, "model", e.o.Name, "err", e.why)
	}
	e.bad, e.why = 0, nil
}

// apart has passages embedded in halves of halves, and returns those on which the model
// fails alone.
func (e *Embedder) apart(ctx context.Context, list []document.Passage) (bad []document.Passage, err error) {
	if len(list) == 1 {
		return e.alone(ctx, list)
	}
	middle := len(list) / 2
	for _, half := range [...][]document.Passage{list[:middle], list[middle:]} {
		err := e.together(ctx, half, maxText)
		if ofTexts(err) {
			var more []document.Passage
			more, err = e.apart(ctx, half)
			bad = append(bad, more...)
		}
		if err != nil {
			return nil, err
		}
	}
	return bad, nil
}

// alone has the beginning of one passage embedded, and returns it if the model fails on
// it, and not on the probe.
func (e *Embedder) alone(ctx context.Context, one []document.Passage) (bad []document.Passage, err error) {
	for _, most := range shorter {
		if len(one[0].Embedded()) <= most {
			continue
		}
		if err := e.together(ctx, one, most); !ofTexts(err) {
			return nil, err
		}
	}
	return one, e.probe(ctx)
}

func (e *Embedder) probe(ctx context.Context) error {
	_, err := e.ask(ctx, 0, []string{probe})
	return err
}

func refused(err error) bool {
	f := (*embed.Fault)(nil)
	return errors.As(err, &f) && f.Refused()
}

// ofTexts reports whether an error may come of one of the texts.
func ofTexts(err error) bool {
	f := (*embed.Fault)(nil)
	return errors.As(err, &f) && f.OfTexts()
}

// open returns the passages that the model may get; the others stay pending.
func (e *Embedder) open(list []document.Passage) (out []document.Passage) {
	may := e.o.MayRead()
	for _, p := range list {
		if p.Type == search.Session || may(p.Path) {
			out = append(out, p)
		}
	}
	return out
}

// together has the first bytes of passages embedded by one request.
func (e *Embedder) together(ctx context.Context, list []document.Passage, most int) error {
	list = e.open(list)
	if len(list) == 0 {
		return nil
	}
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = e.o.Prefixes.Passage + cut(p.Embedded(), most)
	}
	vectors, err := e.ask(ctx, 0, texts)
	if err != nil {
		return err
	}
	k, err := e.sized(ctx, e.current(), len(vectors[0]))
	if err != nil {
		return err
	}
	return e.o.Library.Embed(ctx, k.ID, list, vectors)
}
