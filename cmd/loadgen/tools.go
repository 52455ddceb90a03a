package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gatehouse/cmd/loadgen/field"
	"gatehouse/cmd/loadgen/model"
	"gatehouse/cmd/loadgen/report"
)

// callsPerRun are the tool calls of one answer; a run has at most 50 rounds.
const callsPerRun = 40

// tools measures what the loop needs for one tool call, from the end of the
// model's answer to the request that brings it the result: the call is shown,
// decided about, made, its result and the model's text are written to the
// transcript, and the model is asked again.
func (b *bench) tools(ctx context.Context) error {
	dir, err := os.MkdirTemp(b.dir, "bot-")
	if err != nil {
		return err
	}
	if err := notes(dir); err != nil {
		return err
	}
	d, err := b.desk(ctx, dir)
	if err != nil {
		return err
	}
	t := &report.Tools{}
	err = b.toolCalls(ctx, d, t)
	if err == nil {
		t.Bare, err = bareCalls(ctx, d.model)
	}
	if err != nil {
		return errors.Join(err, d.end())
	}
	b.data.Tools = t
	return d.end()
}

// notes are what the tool reads: nothing to speak of.
func notes(dir string) error {
	folder := filepath.Join(dir, "vault", "Notes")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for n := range callsPerRun {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.md", n)), []byte("Tea.\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) toolCalls(ctx context.Context, d *desk, t *report.Tools) error {
	read := model.Plan{Tool: "Read", Rounds: callsPerRun, Input: func(n int) string { return fmt.Sprintf(`{"file_path":"Notes/%d.md"}`, n) }}
	before, err := d.Series(ctx)
	if err != nil {
		return err
	}
	var gaps []time.Duration
	_, used, err := d.measured(func() ([]field.Sample, error) {
		gaps, err = d.calls(ctx, read, "vault", max(b.c.Messages/200, 1))
		return nil, err
	})
	if err != nil {
		return err
	}
	after, err := d.Series(ctx)
	if err != nil {
		return err
	}
	if err := allFine(before, after, read.Tool); err != nil {
		return err
	}
	made := float64((max(b.c.Messages/200, 1) + 1) * callsPerRun)
	t.Process, t.CPU = report.Summary(gaps), report.MS(used)/made
	t.Commits, _ = report.Commits(before, after, made)
	if t.BareShell, err = bareShell(ctx, 50); err != nil {
		t.Note = "no bubblewrap shell: " + err.Error()
		return nil
	}
	shell := model.Plan{Tool: "Bash", Rounds: 20, Input: func(n int) string { return fmt.Sprintf(`{"command":"echo %d"}`, n) }}
	if gaps, err = d.calls(ctx, shell, "vault", max(b.c.Messages/400, 1)); err != nil {
		return err
	}
	if before, after = after, nil; err == nil {
		after, err = d.Series(ctx)
	}
	t.Shell = report.Summary(gaps)
	return errors.Join(err, allFine(before, after, shell.Tool))
}

// calls makes runs by the plan, one after the other, each in a session of its own,
// after one that warms up. It returns one gap for each call.
func (d *desk) calls(ctx context.Context, p model.Plan, trust string, runs int) (gaps []time.Duration, err error) {
	for i := range runs + 1 {
		d.model.Set(p)
		n, err := d.ask(ctx, fmt.Sprintf("%s-%d", strings.ToLower(p.Tool), i), trust, "Please look it up.")
		if err != nil {
			return nil, err
		}
		got := d.model.Gaps()
		if n != p.Rounds || len(got) != p.Rounds {
			return nil, fmt.Errorf("%s was called %d times and answered %d times, want %d", p.Tool, n, len(got), p.Rounds)
		}
		if i > 0 {
			gaps = append(gaps, got...)
		}
	}
	return gaps, nil
}

// allFine holds that every call of the tool did what it should: a refusal is quick.
func allFine(before, after map[string]float64, tool string) error {
	const name = "gatehouse_tool_calls_total"
	fine := 0.0
	for series, v := range after {
		gained := v - before[series]
		if !strings.HasPrefix(series, name+"{") || !strings.Contains(series, `tool="`+tool+`"`) || gained == 0 {
			continue
		}
		if !strings.Contains(series, `outcome="ok"`) {
			return fmt.Errorf("%.0f calls did not do their work: %s", gained, series)
		}
		fine += gained
	}
	if fine == 0 {
		return fmt.Errorf("no call of %s was counted", tool)
	}
	return nil
}

// bareCalls returns the floor: a client without any loop, which asks again at once.
func bareCalls(ctx context.Context, m *model.Server) (report.Percentiles, error) {
	const n = 200
	m.Set(model.Plan{Tool: "Read", Rounds: n, Input: func(int) string { return `{}` }})
	body := strings.Builder{}
	body.WriteString(`{"messages":[{"role":"user"}`)
	for range n + 1 {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL()+"/chat/completions", strings.NewReader(body.String()+"]}"))
		if err != nil {
			return report.Percentiles{}, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return report.Percentiles{}, err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return report.Percentiles{}, err
		}
		body.WriteString(`,{"role":"tool"}`)
	}
	return report.Summary(m.Gaps()), nil
}

// bareShell returns the floor of a fresh shell: bubblewrap alone, around a program
// that does nothing.
func bareShell(ctx context.Context, n int) (report.Percentiles, error) {
	var took []time.Duration
	for range n {
		began := time.Now()
		out, err := exec.CommandContext(ctx, "/usr/bin/bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "/bin/sh", "-c", "echo").CombinedOutput()
		if err != nil {
			return report.Percentiles{}, fmt.Errorf("bwrap: %w %.200s", err, out)
		}
		took = append(took, time.Since(began))
	}
	return report.Summary(took), nil
}
