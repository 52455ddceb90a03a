package commands

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/core"
	"gatehouse/core/importer/report"
	"gatehouse/core/importer/tasks"
)

// An Import brings conversations of other systems in.
type Import struct {
	Files   []string `arg:"" name:"file" help:"A file or folder: an export of Claude or ChatGPT (zip, JSON or unpacked), Claude Code's ~/.claude/projects, a vault of the original system or of another Gatehouse, or conversations as Markdown."`
	DryRun  bool     `help:"Write nothing; report what would be imported."`
	Archive bool     `help:"Archive what is imported, so that it is not in the list."`
	Again   bool     `help:"Also import conversations that you deleted here."`
	JSON    bool     `help:"As JSON: the answer of GET /api/import/ID for each file."`
}

func (c *Import) Help() string {
	return "The conversations become yours, tagged 'imported', with their times; you continue them like any other. A second import adds what is new and changes what has changed there, but nothing that you continued or deleted here; --again brings back what was deleted. Ctrl-C stops it; the same command goes on where it ended."
}

func (c *Import) Run(p *console.Process) error {
	q, err := p.Connect()
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	all, failed := []report.State{}, false
	for _, name := range c.Files {
		s, err := c.one(p, q, name)
		if err != nil {
			return err
		}
		all = append(all, s)
		failed = failed || s.State == report.Failed || s.Report.Failed > 0
		if !c.JSON {
			if err := printImport(p, &s); err != nil {
				return err
			}
		}
		if s.Report.Stopped {
			break
		}
	}
	if c.JSON {
		if err := console.PrintJSON(p.Stdout, map[string]any{"imports": all}); err != nil {
			return err
		}
	}
	if failed {
		return console.ErrReported
	}
	return nil
}

// one imports one file or directory and follows it to its end.
func (c *Import) one(p *console.Process, q *console.Connection, name string) (s report.State, err error) {
	at, err := filepath.Abs(name)
	if err != nil {
		return s, err
	}
	if err := q.Do(http.MethodPost, "/api/import", map[string]any{"path": at, "dry_run": c.DryRun, "archive": c.Archive, "again": c.Again}, &s); err != nil {
		return s, err
	}
	defer context.AfterFunc(p.Context, func() { // the state reports how far it came
		_ = q.Finish(http.MethodDelete, "/api/import/"+s.ID, nil)
	})()
	for s.State == report.Running {
		if p.Terminal {
			fmt.Fprint(p.Stderr, "\r\x1b[K"+tasks.Line(&s.Report))
		}
		if err := q.Finish(http.MethodGet, "/api/import/"+s.ID+"?wait=5", &s); err != nil {
			return s, err
		}
	}
	if p.Terminal {
		fmt.Fprint(p.Stderr, "\r\x1b[K")
	}
	return s, nil
}

// shownFaults is how many faults the command prints.
const shownFaults = 20

// printImport prints what an import has done, and its faults.
func printImport(p *console.Process, s *report.State) error {
	r := &s.Report
	if s.State == report.Failed {
		fmt.Fprintf(p.Stderr, "gatehouse: %s\n", s.Error)
	}
	for i, e := range r.Faults {
		if i == shownFaults {
			fmt.Fprintf(p.Stderr, "… and %d more; --json lists them.\n", r.Failed-shownFaults)
			break
		}
		at := e.File
		if e.Index > 0 {
			at = fmt.Sprintf("%s, conversation %d", at, e.Index)
		}
		fmt.Fprintf(p.Stderr, "%s is left out: %s\n", core.CleanName(at), cleanLine(e.Reason))
	}
	if r.Format == "" {
		return nil
	}
	done, end := "Imported", ""
	if r.DryRun {
		done = "Would import"
	}
	if r.Stopped {
		end = "\nStopped before the end: the same command goes on."
	}
	_, err := fmt.Fprintf(p.Stdout, "%s from %s (%s): %d added, %d updated, %d unchanged, %d continued here and left alone, %d deleted here and left out, %d empty and left out, %d failed.%s\n",
		done, core.CleanName(r.Name), r.Format, r.Added, r.Updated, r.Unchanged, r.Continued, r.Deleted, r.Empty, r.Failed, end)
	if r.Missing > 0 && err == nil {
		_, err = fmt.Fprintf(p.Stdout, "%s: files that the export does not hold, texts that were cut. The panel has the whole report.\n", core.Counted(r.Missing, "note"))
	}
	return err
}
