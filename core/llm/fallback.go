package llm

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"gatehouse/core/texts"
)

// Fallback returns a Model that asks models in order: it goes to the next one when
// a model faults before it has answered anything, and another model may do
// better: the fault can be retried, or the model is out of reach or refuses
// our key. It first yields a Delta with the next model's name and a Notice.
// Notices and model names alone do not count as an answer. A model that Request.Instead
// refuses is left out.
//
// About is the first model's. When all fault, the error is the first model's
// Fault, with the others joined in Err; it can be retried if any of them can.
// A fault after the first piece of an answer, and every error that is not a
// Fault (an ended context), ends the reply at once.
func Fallback(models ...Model) Model {
	if len(models) == 1 {
		return models[0]
	}
	return fallback(models)
}

type fallback []Model

func (f fallback) About() About {
	if len(f) == 0 {
		return About{}
	}
	return f[0].About()
}

func (f fallback) Reply(ctx context.Context, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		f := fallback(searching(f, req))
		if len(f) == 0 {
			yield(Delta{}, &Fault{Code: CodeUnavailable, Text: texts.Text("fault_no_model")})
			return
		}
		var faults []*Fault
		var left []error // why models were left out
		var from Model
		for _, m := range f {
			if from != nil {
				to := m.About().Priced()
				if req != nil && req.Instead != nil {
					if err := req.Instead(to); err != nil {
						left = append(left, fmt.Errorf("%s is left out: %v", to, err))
						continue
					}
				}
				notice := fmt.Sprintf("%s does not answer (%s), asking %s instead", from.About().Name, plainCode(faults[len(faults)-1].Code), to)
				if !yield(Delta{Model: to, Notice: notice}, nil) {
					return
				}
			}
			fault, stopped := f.try(ctx, m, req, yield)
			if stopped {
				return
			}
			faults, from = append(faults, fault), m
		}
		yield(Delta{}, joined(faults, left))
	}
}

// try passes m's deltas on. It returns the fault that lets the next model be
// asked, or stopped when the reply has ended: answered, refused, or abandoned.
func (f fallback) try(ctx context.Context, m Model, req *Request, yield func(Delta, error) bool) (fault *Fault, stopped bool) {
	answered := false
	for d, err := range m.Reply(ctx, req) {
		if err != nil {
			if !answered && ctx.Err() == nil && errors.As(err, &fault) && passOn(fault) {
				return fault, false
			}
			yield(Delta{}, err)
			return nil, true
		}
		answered = answered || isAnswer(d)
		if !yield(d, nil) {
			return nil, true
		}
	}
	return nil, true
}

// passOn reports whether another model may answer where this one faulted.
func passOn(f *Fault) bool {
	return f.CanRetry || f.Code == CodeAuth || f.Code == CodeCredit || f.Code == CodeUnavailable
}

// isAnswer reports whether d holds a part of the answer itself.
func isAnswer(d Delta) bool {
	return d.Text != "" || d.Thinking != "" || d.Signature != "" || d.Redacted != "" || d.Call != nil || d.Usage != nil || d.Stop != ""
}

// joined returns the first fault, with the others and why models were left out behind it for the log.
func joined(faults []*Fault, left []error) *Fault {
	out := *faults[0]
	errs := []error{faults[0].Err}
	for _, f := range faults[1:] {
		errs = append(errs, f)
		out.CanRetry = out.CanRetry || f.CanRetry
		if f.After > 0 && (out.After == 0 || f.After < out.After) {
			out.After = f.After
		}
	}
	out.Err = errors.Join(append(errs, left...)...)
	return &out
}

// plainCode returns a fault's code as text for a notice.
func plainCode(code string) string {
	switch code {
	case CodeAuth:
		return "it refuses our key"
	case CodeCredit:
		return "no credit left"
	case CodeRateLimited, CodeOverloaded:
		return "too many requests"
	case CodeCutOff, CodeGarbage:
		return "a broken answer"
	case CodeSilence:
		return "no answer in time"
	}
	return "out of reach"
}
