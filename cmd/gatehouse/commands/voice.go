package commands

import (
	"fmt"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/core/voice/pending"
)

// Voice has the commands about recordings.
type Voice struct {
	Retry VoiceRetry `cmd:"" help:"Transcribe the recordings in journals and chats that have no text yet."`
}

// A VoiceRetry transcribes recordings that wait.
type VoiceRetry struct {
	JSON bool `help:"As JSON."`
}

func (c *VoiceRetry) Help() string {
	return "A recording in a journal whose transcription failed, or that came while none was set up, waits for its text, as does a voice message in a chat whose transcription failed. The gateway tries again automatically, after 5 minutes at first and then less often, for 90 days in journals and 7 in chats. This command tries at once, for example after the transcription was repaired."
}

func (c *VoiceRetry) Run(p *console.Process) error {
	q, err := p.Connect()
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	var r pending.Report
	if err = q.Long("/control/voice/retry", &r); err == nil && c.JSON {
		return console.PrintJSON(p.Stdout, r)
	} else if err == nil {
		_, err = fmt.Fprintln(p.Stdout, &r)
	}
	return err
}
