package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"gatehouse/cmd/gatehouse/speech"
	"gatehouse/core/voice"
	"gatehouse/core/voice/program"
)

// checkVoice has the configured server transcribe a second of silence, or looks for the
// configured command and its model, and looks for ffmpeg.
func checkVoice(ctx context.Context, p Subject) []Finding {
	c := p.Config
	const name = "voice"
	var f Finding
	switch {
	case c.TranscribeCommand != "":
		f = checkCommand(c.TranscribeCommand, c.TranscribeModel)
	case c.TranscribeURL != "":
		f = Finding{name, OK, "the server of GATEHOUSE_TRANSCRIBE_URL transcribes; it gets the recordings", ""}
		engine, end, err := speech.Server(c)
		if err == nil {
			_, err = engine.Transcribe(ctx, make([]int16, voice.Rate))
			_ = end()
		}
		if err != nil {
			f = Finding{name, Fail, fmt.Sprintf("%v; recordings are kept and transcribed later", err), "check GATEHOUSE_TRANSCRIBE_URL and GATEHOUSE_TRANSCRIBE_MODEL"}
		}
	default:
		return nil
	}
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		return []Finding{f, {name, Warn, "ffmpeg is not installed: recordings other than Ogg Opus and WAV are read only by a server that reads their format", "install ffmpeg"}}
	}
	return []Finding{f}
}

func checkCommand(command, model string) Finding {
	const name = "voice"
	if _, err := program.NewEngine(program.Options{}, command, model); err != nil {
		return Finding{name, Fail, fmt.Sprintf("%v; recordings are kept and transcribed later", err), "install the program, or correct GATEHOUSE_TRANSCRIBE_COMMAND"}
	}
	if filepath.IsAbs(model) {
		if _, err := os.Stat(model); err != nil {
			return Finding{name, Fail, fmt.Sprintf("the model is missing: %v", err), "correct GATEHOUSE_TRANSCRIBE_MODEL"}
		}
	}
	return Finding{name, OK, "the program of GATEHOUSE_TRANSCRIBE_COMMAND is there; it runs isolated, so it needs the sandbox", ""}
}
