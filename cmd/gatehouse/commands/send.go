package commands

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/web/api/bots"
	"gatehouse/web/upload"
)

// A Send sends a message through a bot.
type Send struct {
	Text   string        `arg:"" optional:"" help:"The text, in Markdown; - reads it from the standard input."`
	Bot    string        `help:"The bot that sends it; not needed if there is only one."`
	Chat   string        `default:"owner" help:"Where: the chat's id as the platform has it, or owner, your own chat with the bot."`
	Attach []string      `placeholder:"FILE" sep:"none" help:"A file of the vault that goes along; more than once for several."`
	File   []string      `placeholder:"FILE" sep:"none" help:"A file of this machine that goes along, up to 20 MB; more than once for several."`
	ID     string        `name:"id" placeholder:"NAME" help:"A name of your own: a message with the same one is sent only once."`
	Wait   time.Duration `placeholder:"30s" help:"Wait up to this long for delivery; fail if it is not delivered by then."`
	Status string        `placeholder:"ID" help:"Send no message; report whether the one with this id was delivered."`
	JSON   bool          `help:"As JSON."`
}

func (c *Send) Help() string {
	return "The message is stored and sent in its chat's order; without --wait the command ends as soon as it is stored. It reaches approved people and enabled groups. When no gateway runs it is sent at the next start."
}

func (c *Send) Run(p *console.Process) error {
	if (c.Text == "" && len(c.Attach)+len(c.File) == 0) == (c.Status == "") {
		return core.Errorf(core.Invalid, "write the text (- reads it from standard input), or --status with a message's id")
	}
	files, err := c.read()
	if err != nil {
		return err
	}
	var m bots.Posted
	if c.Status != "" {
		err = p.Get(sentPath(c.Status), &m)
	} else if c.Text, err = c.message(p); err == nil {
		err = p.Request(http.MethodPost, "/control/messages", control.Message{
			Unasked: bots.Unasked{ID: c.ID, Bot: c.Bot, Chat: c.Chat, Text: c.Text, Attachments: c.Attach}, Attached: files,
		}, &m)
	}
	if err != nil {
		return err
	}
	m, err = c.await(p, m)
	if c.JSON {
		err = errors.Join(console.PrintJSON(p.Stdout, m), err)
	} else if err == nil {
		_, err = fmt.Fprintf(p.Stdout, "%s %s\n", m.Status, m.ID)
	}
	return err
}

func sentPath(id string) string { return control.Path("control", "messages", id) }

// read returns what goes along, within the bounds that the API has.
func (c *Send) read() (files []control.File, err error) {
	if len(c.File)+len(c.Attach) > bots.MaxSendFiles {
		return nil, core.Errorf(core.Invalid, "at most %d files go with a message", bots.MaxSendFiles)
	}
	total := 0
	for _, name := range c.File {
		f, err := os.Open(name)
		if err != nil {
			return nil, core.Errorf(core.Invalid, "%v", err)
		}
		data, err := io.ReadAll(io.LimitReader(f, attach.MaxFile+1))
		_ = f.Close() // it was only read
		if err != nil {
			return nil, core.Errorf(core.Invalid, "%v", err)
		}
		if total += len(data); len(data) > attach.MaxFile || total > upload.MaxFiles {
			return nil, core.Errorf(core.TooLarge, "%s is too large: a file may have %s, all together %s", name, core.ByteSize(attach.MaxFile), core.ByteSize(upload.MaxFiles))
		}
		files = append(files, control.File{Name: filepath.Base(name), Data: data})
	}
	return files, nil
}

// message returns the text to send, within the API's limit.
func (c *Send) message(p *console.Process) (string, error) {
	text := c.Text
	if text == "" && len(c.Attach)+len(c.File) > 0 {
		return "", nil // the files say it
	}
	if text == "-" {
		if p.Stdin == nil {
			return "", core.Errorf(core.Invalid, "there is no standard input")
		}
		b, err := io.ReadAll(io.LimitReader(p.Stdin, bots.MaxText+1))
		if err != nil {
			return "", fmt.Errorf("read the text: %w", err)
		}
		text = string(b)
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", core.Errorf(core.Invalid, "the text is empty")
	case len(text) > bots.MaxText:
		return "", core.Errorf(core.Invalid, "the text is over %d bytes", bots.MaxText)
	}
	return text, nil
}

// await asks until m is settled or the time has ended; an error where it has not arrived.
func (c *Send) await(p *console.Process, m bots.Posted) (bots.Posted, error) {
	quiet := *p // report only once that no gateway runs
	quiet.Stderr = io.Discard
	end := time.Now().Add(c.Wait)
	for c.Wait > 0 && (m.Status == "queued" || m.Status == "sending") && time.Now().Before(end) && core.Sleep(p.Context, core.System{}, 100*time.Millisecond) {
		var now bots.Posted
		if err := quiet.Get(sentPath(m.ID), &now); err != nil {
			return m, err
		}
		m = now
	}
	switch {
	case m.Status == "failed":
		return m, core.Errorf(core.Denied, "%s was not taken by the platform: %s", m.ID, m.Error)
	case m.Status == "unknown":
		return m, core.Errorf(core.Busy, "%s was sent; whether it arrived is unknown: %s", m.ID, m.Error)
	case c.Wait > 0 && m.Status != "sent":
		return m, core.Errorf(core.Busy, "%s has not arrived yet (%s); it stays in the queue", m.ID, strings.TrimSuffix(m.Status+": "+m.Error, ": "))
	}
	return m, nil
}
