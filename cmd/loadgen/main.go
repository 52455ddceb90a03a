// Command loadgen measures a gateway. It plays the users and the platforms
// (the strict simulators, in its own process, flood control off), starts the
// program under test as its child, and next to every figure it measures its own
// floor in the same run: the same load on a bare bot that stores nothing, and
// what an fsync costs on the same disk.
//
// It uses loopback only, is bounded in time and ends on its own. It ends with 1
// when a message was lost, answered twice or answered out of order.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// command is the command line.
type command struct {
	Run   runCmd   `cmd:"" default:"withargs" help:"Measure the gateway (the default)."`
	Bare  bareCmd  `cmd:"" hidden:"" help:"The bare bot that floors are measured with; loadgen starts it itself."`
	Index indexCmd `cmd:"" hidden:"" help:"Measures the search index in process; loadgen starts it itself."`
}

type runCmd struct {
	Program   string        `required:"" type:"existingfile" help:"The gateway to measure: a built gatehouse."`
	Only      []string      `help:"Measure only these parts: start, memory, latency, rate, burst, fsync, thinking, tools, waiting, streaming, streams, council, scale, index." placeholder:"PART"`
	Discord   float64       `default:"0.5" help:"Share of the chats that are on Discord, 0 to 1; the others are on Telegram."`
	Messages  int           `default:"2000" help:"Messages of the latency parts, 100 to 2000."`
	Rate      float64       `default:"50" help:"Messages a second of the open loop."`
	Chats     int           `default:"500" help:"Chats of the burst; at most 20000."`
	Each      int           `default:"4" help:"Messages of each chat in the burst"`
	Rounds    int           `default:"5" help:"Bursts, each on the gateway and on the bare bot in turn; medians are reported."`
	Settle    time.Duration `default:"5m" help:"How long after a burst the memory is read for the last time."`
	Waiting   int           `default:"1000" help:"Runs that wait for a slow model at once, each in a chat of its own; at most 2000."`
	Streaming int           `default:"1000" help:"Chats whose answers stream at once; at most 2000."`
	Idle      int           `default:"10000" help:"Event streams that wait, of the part streams; at most 12000."`
	Active    int           `default:"1000" help:"Event streams whose model talks, at the same time; at most 2000."`
	Rows      int           `default:"1000000" help:"Finished inbox rows of the part scale."`
	Lanes     int           `default:"100000" help:"Known chats of the part scale."`
	History   int           `default:"0" help:"Rows of the audit log, and as many of usage, in the part scale, over 90 days; at most 20000000. 10000000 take some 5 GiB of disk."`
	Passages  int           `default:"100000" help:"Passages of the part index; at most 2000000. 100000 take 1 GiB of disk."`
	Dir       string        `type:"existingdir" help:"Where vaults and databases are made and removed again; the system's temporary folder when empty. Its disk is what fsync is measured on."`
	Database  string        `placeholder:"URL" help:"A PostgreSQL database for the gateways, each in a schema of its own that is dropped at the end, in place of files. Its time is not in the processor time of a message. Not for the parts scale and streams."`
	Keep      bool          `help:"Keep those folders, to look at them."`
	Quote     bool          `help:"Answer by the built-in local/quote in place of a model over HTTP; the bare bot then asks none."`
	Build     time.Duration `help:"The time of a cold build, measured by the caller, to be reported."`
	Quiet     time.Duration `help:"Wait at most this long for the machine to be idle before each part."`
	Report    string        `type:"path" help:"Write the report as Markdown to this file, and the raw data beside it as .json."`
	JSON      bool          `help:"Print the raw data instead of the table."`
}

const description = `Measures a gateway against the simulated platforms: latency, throughput, losses, doubles, order, memory, CPU, commits and fsyncs per message, each beside a floor measured in the same run.

Exit codes: 0 measured (also where a goal is missed), 1 something was lost, doubled or out of order, or the measurement failed, 2 bad usage.`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	var c command
	code := -1
	parser, err := kong.New(&c, kong.Name("loadgen"), kong.Description(description), kong.Exit(func(n int) { code = n }),
		kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		fmt.Fprintln(os.Stderr, "loadgen:", err)
		return 1
	}
	k, err := parser.Parse(args)
	if code >= 0 { // --help
		return code
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "loadgen:", err)
		return 2
	}
	if err := k.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "loadgen:", err)
		return 1
	}
	return 0
}

// Validate is called by kong.
func (c *runCmd) Validate() error {
	switch {
	case !(c.Discord >= 0 && c.Discord <= 1):
		return errors.New("--discord is from 0 to 1")
	case c.Messages < 100 || c.Messages > 2000: // a simulator keeps 500 messages of a chat
		return errors.New("--messages is from 100 to 2000")
	case c.Chats < 1 || c.Chats > 20_000 || c.Each < 1 || c.Each*(c.Rounds+1) > 80:
		return errors.New("--chats is from 1 to 20000, --each times --rounds+1 at most 80")
	case c.Rate <= 0 || c.Rate > 10_000:
		return errors.New("--rate is from 1 to 10000")
	case c.Rounds < 1 || c.Rounds > 50:
		return errors.New("--rounds is from 1 to 50")
	case c.Settle < time.Second || c.Settle > time.Hour:
		return errors.New("--settle is from 1s to 1h")
	case c.Waiting < 2 || c.Waiting > 2000:
		return errors.New("--waiting is from 2 to 2000")
	case c.Streaming < 2 || c.Streaming > 2000:
		return errors.New("--streaming is from 2 to 2000")
	case c.Idle < 1 || c.Idle > 12_000 || c.Active < 1 || c.Active > 2000: // the gateway keeps 1000 keys of 16 streams
		return errors.New("--idle is from 1 to 12000, --active from 1 to 2000")
	case c.Rows < c.Lanes || c.Rows > 10_000_000 || c.Lanes < 0:
		return errors.New("--rows is from --lanes to 10000000")
	case c.Passages < 1000 || c.Passages > 2_000_000:
		return errors.New("--passages is from 1000 to 2000000")
	case c.History < 0 || c.History > 20_000_000:
		return errors.New("--history is from 0 to 20000000")
	}
	if c.Database != "" && (len(c.Only) == 0 || slices.Contains(c.Only, "scale") || slices.Contains(c.Only, "streams")) {
		return errors.New("--database needs --only, and there neither scale nor streams, which write into SQLite's file")
	}
	for _, p := range c.Only {
		if !slices.Contains(allParts, p) {
			return fmt.Errorf("--only=%s: the parts are %v", p, allParts)
		}
	}
	return nil
}

var allParts = []string{"start", "memory", "latency", "rate", "burst", "thinking", "fsync", "tools", "waiting", "streaming", "streams", "council", "scale", "index"}
