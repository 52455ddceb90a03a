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
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"gatehouse/cmd/gatehouse/commands"
	"gatehouse/cmd/gatehouse/commands/access"
	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/commands/migrating"
	"gatehouse/cmd/gatehouse/commands/period"
	"gatehouse/cmd/gatehouse/commands/syncing"
	"gatehouse/cmd/gatehouse/restore"
	"gatehouse/cmd/gatehouse/service"
	"gatehouse/cmd/gatehouse/setup"
	"gatehouse/cmd/gatehouse/stage"
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

// global are the flags of every command.
type global struct {
	EnvFile string `name:"env-file" type:"path" placeholder:"FILE" help:"File of settings to begin with, mode 0600; the environment overrides it. init writes it."`
}

// serving is the command line of serve.
type serving struct {
	Serve serveCmd `cmd:"" help:"Run the gateway with the settings of the environment."`
}

// command is the whole command line.
type command struct {
	global

	Init commands.Init `cmd:"" help:"Ask for bots, model and password, check each, and write a file of settings."`
	serving
	Demo    demoCmd           `cmd:"" help:"Run the gateway with a simulated Telegram and Discord on this machine: no account, no key."`
	Doctor  commands.Doctor   `cmd:"" help:"Check configuration, vault, database, platform, model, clock and ports; report how to fix each fault."`
	Claim   access.Claim      `cmd:"" help:"Print a code with which you claim the bot: send it /claim CODE in a direct message."`
	Pairing access.Pairing    `cmd:"" help:"List and decide pairing requests; revoke access and block users."`
	People  access.People     `cmd:"" help:"List users with their numbers, accounts, role, trust and state."`
	Invite  access.Invite     `cmd:"" help:"Create, list and revoke invitations: a link or code that grants access."`
	Agents  commands.Agents   `cmd:"" help:"List the vault's agents, skills and workspaces; add one to begin with, or a daily agent."`
	Keys    access.Keys       `cmd:"" help:"List, make, rotate and revoke API keys."`
	Admins  access.Admins     `cmd:"" help:"List, make, change and remove the accounts of the panel; reset their passwords."`
	Send    commands.Send     `cmd:"" help:"Send a message to a chat through a bot: alerts, cron jobs."`
	Search  commands.Search   `cmd:"" help:"Search conversations and files of the vault."`
	MCP     commands.MCP      `cmd:"" name:"mcp" help:"Let an agent on this machine use the gateway, over the Model Context Protocol on standard input and output."`
	Audit   commands.Audit    `cmd:"" help:"Show who did what."`
	Export  commands.Export   `cmd:"" help:"Print a session as Markdown, to read or to keep."`
	Backup  commands.Backup   `cmd:"" help:"Write database and vault into one archive; the gateway may go on serving."`
	Restore commands.Restore  `cmd:"" help:"Restore a backup into an empty vault."`
	Migrate migrating.Migrate `cmd:"" help:"Move the database between SQLite and PostgreSQL, while the gateway is stopped."`
	Voice   commands.Voice    `cmd:"" help:"Recordings and their texts."`
	Reindex commands.Reindex  `cmd:"" help:"Rebuild the list of sessions from the vault's files."`
	Import  commands.Import   `cmd:"" help:"Bring in conversations of Claude, ChatGPT, Claude Code or the original system."`
	Sync    syncing.Sync      `cmd:"" help:"Keep a folder of this machine the same as the vault of a gateway."`
	Forget  commands.Forget   `cmd:"" help:"Erase a user and all their data."`
	Explain commands.Explain  `cmd:"" help:"Show which rule decides a tool call: a command, a path, or one call per line as JSON."`
	Version versionCmd        `cmd:"" help:"Print the version."`
}

const description = `Gatehouse: talk to AI agents from your chat apps, without letting strangers in.

Settings come from GATEHOUSE_* variables and --env-file (docs/settings.md lists them; 'gatehouse doctor' checks them).
Exit codes: 0 clean, 1 failure, 2 bad usage or configuration.`

// process is what a command may use of the world.
type process struct {
	console.Process
	hangup  chan os.Signal   // SIGHUP, once hearHangups was called; nil otherwise
	again   *restore.Restart // the program starts again when the command has ended; nil: it does not
	manager *service.Manager // of serve
}

// hearHangups has a SIGHUP ask for a reload instead of ending the process. On a
// terminal it keeps its meaning: the window was closed.
func (p *process) hearHangups() (stop func()) {
	if p.Terminal {
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
	env := os.Environ() // with the secrets that serve takes out of it
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	p := &process{Process: console.Process{Context: ctx, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Terminal: setup.IsTerminal(os.Stderr),
		Version: version, Open: openFiles, DatabaseMissing: checkMissing, Demo: stage.Folder}}
	code := run(p, os.Args[1:])
	if p.again != nil && code == exitClean {
		code = p.fail(p.again.Exec(env))
	}
	os.Exit(code)
}

// meant are the commands that beginners look for under other names.
var meant = map[string]string{
	"start": "serve", "run": "serve", "up": "serve", "daemon": "serve", "gateway": "serve",
	"status": "doctor", "check": "doctor", "health": "doctor", "config": "doctor", "setup": "init", "configure": "init", "onboard": "init", "install": "init",
	"approve": "pairing approve", "users": "people list", "persons": "people list", "user": "people list", "who": "people list", "requests": "pairing list", "invitation": "invite", "token": "keys", "key": "keys", "logs": "audit", "find": "search", "grep": "search", "admin": "admins", "accounts": "admins", "password": "admins reset",
	"--version": "version", "-v": "version", "-V": "version",
}

// listed are the commands that list what others are given, by these.
var listed = map[string]string{
	"keys rotate": "keys list", "keys revoke": "keys list", "invite revoke": "invite list", "pairing revoke": "people list",
	"pairing approve": "pairing list --status all", "pairing deny": "pairing list --status all", "pairing block": "pairing list --status all",
	"admins role": "admins list", "admins rename": "admins list", "admins reset": "admins list", "admins remove": "admins list", "admins totp-off": "admins list", "admins sessions": "admins list",
	"export": "search WORDS", "explain": "search WORDS",
}

// lists returns where what k was given is listed, if err is that there is none.
func lists(k *kong.Context, err error) string {
	at := k.Selected()
	if at == nil || core.KindOf(err) != core.NotFound || strings.Contains(err.Error(), "'gatehouse ") {
		return ""
	}
	if by := listed[strings.TrimPrefix(at.FullPath(), k.Model.Name+" ")]; by != "" {
		return "'gatehouse " + by + "' shows them.\n"
	}
	return ""
}

// printHelp prints the help of a command, and behind it that of the one of its commands that
// runs where none is named, whose flags it takes.
func printHelp(options kong.HelpOptions, k *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, k); err != nil {
		return err
	}
	at := k.Selected()
	if at == nil || at.DefaultCmd == nil {
		return nil
	}
	inner, err := kong.Trace(k.Kong, strings.Fields(strings.TrimPrefix(at.DefaultCmd.FullPath(), k.Model.Name+" ")))
	if err != nil {
		return err
	}
	fmt.Fprintf(k.Stdout, "\nWithout a command it is '%s':\n\n", at.DefaultCmd.FullPath())
	return kong.DefaultHelpPrinter(options, inner)
}

// helpFor returns where a command line that cannot be read is explained.
func helpFor(err error, args []string) string {
	var parse *kong.ParseError
	for _, a := range args {
		if other := meant[a]; other != "" && (strings.HasPrefix(err.Error(), "unexpected argument "+a) || strings.HasPrefix(err.Error(), "unknown flag "+a)) {
			return "Did you mean 'gatehouse " + other + "'? 'gatehouse --help' lists the commands."
		}
	}
	if errors.As(err, &parse) && parse.Context != nil {
		if at := parse.Context.Selected(); at != nil && at.Type == kong.CommandNode {
			return "Run '" + at.FullPath() + " --help' for its arguments and flags."
		}
	}
	return "Run 'gatehouse --help' for the commands."
}

// plain returns the text of an error about the command line, in words of users.
func plain(err error) string {
	return strings.NewReplacer(`one of "",`, "one of ", "expected a valid 64 bit int but got", "must be a whole number, not").Replace(err.Error())
}

// parseServe returns a command line that only runs serve, and its flags; nil for any other.
// The whole command line takes longer to be made than serve needs for anything else before
// it opens its files.
func parseServe(args []string) (*kong.Context, global) {
	var c struct {
		global
		serving
	}
	if !slices.Contains(args, "serve") {
		return nil, c.global
	}
	asked := false // for help, which names all commands
	parser, err := kong.New(&c, kong.Name("gatehouse"), kong.Writers(io.Discard, io.Discard), period.Option(), kong.Exit(func(int) { asked = true }))
	if err != nil {
		return nil, c.global
	}
	k, err := parser.Parse(args)
	if err != nil || asked {
		return nil, c.global
	}
	return k, c.global
}

// run runs the program within this process and returns the exit code.
func run(p *process, args []string) (exit int) {
	if k, flags := parseServe(args); k != nil {
		return p.runCommand(k, flags)
	}
	var c command
	code, out := -1, p.Stdout
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	if len(args) == 0 { // no command: show what there is
		args, out = []string{"--help"}, p.Stderr
		defer func() { exit = max(exit, exitUsage) }()
	}
	parser, err := kong.New(&c, kong.Name("gatehouse"), kong.Description(description), kong.UsageOnError(), period.Option(), kong.Help(printHelp),
		kong.Writers(out, p.Stderr), kong.Exit(func(n int) { code = n }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		fmt.Fprintln(p.Stderr, "gatehouse:", err)
		return exitFailure
	}
	k, err := parser.Parse(args)
	if code >= 0 { // --help
		return code
	}
	if err != nil {
		fmt.Fprintf(p.Stderr, "gatehouse: %s\n%s\n", plain(err), helpFor(err, args))
		return exitUsage
	}
	return p.runCommand(k, c.global)
}

// runCommand runs the command that k has read and returns the exit code.
func (p *process) runCommand(k *kong.Context, flags global) int {
	p.EnvFile = flags.EnvFile
	if p.EnvFile != "" && k.Command() != "init" {
		if err := configs.UseEnvFile(p.EnvFile); err != nil {
			return p.fail(err)
		}
	}
	if err := k.Run(p, &p.Process); err != nil {
		code := p.fail(err)
		fmt.Fprint(p.Stderr, lists(k, err))
		return code
	}
	return exitClean
}

// fail prints err and returns its exit code.
func (p *process) fail(err error) int {
	var problems configs.Problems
	switch {
	case errors.Is(err, console.ErrReported):
		return exitFailure
	case errors.Is(err, console.ErrReportedUsage):
		return exitUsage
	case errors.As(err, &problems):
		fmt.Fprintf(p.Stderr, "gatehouse: %v\n", problems)
		return exitUsage
	case core.KindOf(err) == core.Invalid:
		fmt.Fprintln(p.Stderr, "gatehouse:", err)
		return exitUsage
	}
	fmt.Fprintln(p.Stderr, "gatehouse:", err)
	return exitFailure
}

type versionCmd struct {
	JSON bool `help:"As JSON."`
}

func (c *versionCmd) Run(p *process) error {
	revision, goVersion := buildInfo()
	if c.JSON {
		return console.PrintJSON(p.Stdout, map[string]string{"version": version, "revision": revision, "go": goVersion})
	}
	_, err := fmt.Fprintf(p.Stdout, "gatehouse %s (%s, %s)\n", version, revision, goVersion)
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
