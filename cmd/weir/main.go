// Command weir runs and inspects Weir apps: dev, check, call, edges.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"weir/pkg/settings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// exit is an error with the exit code that it asks for: 1 for what the command was to find or do, 2 for usage and
// start-up.
type exit struct {
	code int
	err  error
}

func (e exit) Error() string { return e.err.Error() }
func (e exit) Unwrap() error { return e.err }

func run(ctx context.Context, args, env []string, stdout, stderr io.Writer) int {
	code, done := 0, false
	bare, helps := len(args) == 0, stdout
	if bare { // help, but nothing that was asked for
		args, helps = []string{"--help"}, stderr
	}
	var commands struct {
		Dev   devCommand   `cmd:"" help:"Run an app with everything it needs in this one process."`
		Check checkCommand `cmd:"" help:"Find every mistake in an app's declarations and migrations."`
		Call  callCommand  `cmd:"" help:"Call a method of an object of a running app."`
		Edges edgesCommand `cmd:"" help:"Show who follows an object, and what was dropped."`
	}
	parser, err := kong.New(&commands, kong.Name("weir"), kong.Description("Objects in Lua that publish events to approved followers."),
		kong.Writers(helps, stderr), kong.Exit(func(c int) { code, done = c, true }), kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.ExplicitGroups([]kong.Group{{Key: "limits", Title: "Limits:"}}))
	if err != nil {
		fmt.Fprintln(stderr, "weir:", err)
		return 2
	}
	command, err := parser.Parse(args)
	if bare {
		return 2
	}
	if done {
		return code
	}
	if err == nil {
		err = settings.CheckEnvironment(env)
	}
	if err != nil {
		fmt.Fprintln(stderr, "weir:", err)
		return 2
	}
	err = command.Run(&process{ctx: ctx, stdout: stdout, stderr: stderr})
	if err == nil {
		return 0
	}
	if err.Error() != "" {
		fmt.Fprintln(stderr, err)
	}
	var e exit
	if errors.As(err, &e) {
		return e.code
	}
	return 1
}

// process is what a command works with.
type process struct {
	ctx            context.Context
	stdout, stderr io.Writer
}
