// Command gatehouse lets users talk to AI agents from the chat apps they
// already use, without letting strangers in.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"gatehouse/cmd/gatehouse/setup"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/attach/pdftext"
	"gatehouse/core/sandbox"
	"gatehouse/core/sandbox/container"
)

// Exit codes.
const (
	exitClean   = 0
	exitFailure = 1
	exitUsage   = 2 // bad usage or configuration
)

// version is set by the build (-ldflags "-X main.version=…").
var version = "dev"

// command is the whole command line.
type command struct {
	EnvFile string `name:"env-file" type:"path" placeholder:"FILE" help:"File of settings to begin with, mode 0600; the environment overrides it. init writes it."`

	Init    initCmd    `cmd:"" help:"Ask for bots, model and password, check each, and write a file of settings."`
	Serve   serveCmd   `cmd:"" help:"Run the gateway with the settings of the environment."`
	Demo    demoCmd    `cmd:"" help:"Run the gateway with a simulated Telegram and Discord on this machine: no account, no key."`
	Doctor  doctorCmd  `cmd:"" help:"Check configuration, vault, database, platform, model, clock and ports; report how to fix each fault."`
	Claim   claimCmd   `cmd:"" help:"Print a code with which you claim the bot: send it /claim CODE in a direct message."`
	Pairing pairingCmd `cmd:"" help:"List and decide pairing requests; revoke access and block users."`
	Invite  inviteCmd  `cmd:"" help:"Create, list and revoke invitations: a link or code that grants access."`
	Agents  agentsCmd  `cmd:"" help:"List the vault's agents, skills and workspaces; add one to begin with."`
	Keys    keysCmd    `cmd:"" help:"List, make and revoke API keys."`
	Send    sendCmd    `cmd:"" help:"Send a message to a chat through a bot: alerts, cron jobs."`
	Audit   auditCmd   `cmd:"" help:"Show who did what."`
	Export  exportCmd  `cmd:"" help:"Print a session as Markdown, to read or to keep."`
	Backup  backupCmd  `cmd:"" help:"Write database and vault into one archive; the gateway may go on serving."`
	Restore restoreCmd `cmd:"" help:"Restore a backup into an empty vault."`
	Reindex reindexCmd `cmd:"" help:"Rebuild the list of sessions from the vault's files."`
	Forget  forgetCmd  `cmd:"" help:"Erase a user and all their data."`
	Explain explainCmd `cmd:"" help:"Show which rule decides a tool call: a command, a path, or one call per line as JSON."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

const description = `Gatehouse: talk to AI agents from your chat apps, without letting strangers in.

Settings come from GATEHOUSE_* variables and --env-file (docs/settings.md lists them; 'gatehouse doctor' checks them).
Exit codes: 0 clean, 1 failure, 2 bad usage or configuration.`

// process is what a command may use of the world.
type process struct {
	ctx     context.Context
	stdin   *os.File // answers; nil: none
	stdout  io.Writer
	stderr  io.Writer
	tty     bool           // stderr is a terminal
	hangup  chan os.Signal // SIGHUP, once hearHangups was called; nil otherwise
	envFile string         // --env-file
}

// hearHangups has a SIGHUP ask for a reload instead of ending the process. On a
// terminal it keeps its meaning: the window was closed.
func (p *process) hearHangups() (stop func()) {
	if p.tty {
		return func() {}
	}
	p.hangup = make(chan os.Signal, 1)
	signal.Notify(p.hangup, syscall.SIGHUP)
	return func() { signal.Stop(p.hangup) }
}

func main() {
	pdftext.Main() // where this is our own program called again, to read a PDF or inside a sandbox, these never return
	sandbox.Main()
	container.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	p := &process{ctx: ctx, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, tty: setup.IsTerminal(os.Stderr)}
	os.Exit(run(p, os.Args[1:]))
}

// helpFor reports where a command line that can't be read is explained.
func helpFor(err error) string {
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		if at := parse.Context.Selected(); at != nil && at.Type == kong.CommandNode {
			return "Run '" + at.FullPath() + " --help' for its arguments and flags."
		}
	}
	return "Run 'gatehouse --help' for the commands."
}

// run runs the program within this process and returns the exit code.
func run(p *process, args []string) (exit int) {
	var c command
	code, out := -1, p.stdout
	if len(args) == 0 { // no command: show what there is
		args, out = []string{"--help"}, p.stderr
		defer func() { exit = max(exit, exitUsage) }()
	}
	parser, err := kong.New(&c, kong.Name("gatehouse"), kong.Description(description), kong.UsageOnError(),
		kong.Writers(out, p.stderr), kong.Exit(func(n int) { code = n }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		fmt.Fprintln(p.stderr, "gatehouse:", err)
		return exitFailure
	}
	k, err := parser.Parse(args)
	if code >= 0 { // --help
		return code
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "gatehouse: %s\n%s\n", strings.Replace(err.Error(), `one of "",`, "one of ", 1), helpFor(err))
		return exitUsage
	}
	p.envFile = c.EnvFile
	if p.envFile != "" && k.Command() != "init" {
		if err := configs.UseEnvFile(p.envFile); err != nil {
			return p.fail(err)
		}
	}
	if err := k.Run(p); err != nil {
		return p.fail(err)
	}
	return exitClean
}

// Errors that were printed already: a failure, and a bad configuration.
var (
	errSilent      = errors.New("failed")
	errSilentUsage = errors.New("bad configuration")
)

// fail prints err and returns its exit code.
func (p *process) fail(err error) int {
	var problems configs.Problems
	switch {
	case errors.Is(err, errSilent):
		return exitFailure
	case errors.Is(err, errSilentUsage):
		return exitUsage
	case errors.As(err, &problems):
		fmt.Fprintf(p.stderr, "gatehouse: %v\n", problems)
		return exitUsage
	case core.KindOf(err) == core.Invalid:
		fmt.Fprintln(p.stderr, "gatehouse:", err)
		return exitUsage
	}
	fmt.Fprintln(p.stderr, "gatehouse:", err)
	return exitFailure
}

type versionCmd struct {
	JSON bool `help:"As JSON."`
}

func (c *versionCmd) Run(p *process) error {
	revision, goVersion := buildInfo()
	if c.JSON {
		return printJSON(p.stdout, map[string]string{"version": version, "revision": revision, "go": goVersion})
	}
	_, err := fmt.Fprintf(p.stdout, "gatehouse %s (%s, %s)\n", version, revision, goVersion)
	return err
}

// buildInfo returns the revision this program was built from and by which Go.
func buildInfo() (revision, goVersion string) {
	revision = "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return revision, goVersion
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = s.Value
		}
	}
	return revision, info.GoVersion
}
