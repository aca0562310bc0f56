package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"weir/pkg/app"
	"weir/pkg/lualib"
	"weir/pkg/settings"
	"weir/services/host/hostd"
)

type checkCommand struct {
	App     string `arg:"" optional:"" default:"." env:"WEIR_APP" help:"The app's folder."`
	Secrets string `env:"WEIR_SECRETS_DIR" help:"A folder with the app's secrets as files."`
}

// Run prints every mistake as file:line: message.
func (c *checkCommand) Run(p *process) error {
	log, err := settings.Log("error", os.Stderr, false)
	if err != nil {
		return exit{2, err}
	}
	secrets, err := settings.Secrets(os.LookupEnv, c.Secrets)
	if err != nil {
		return exit{2, fmt.Errorf("weir check: %w", err)}
	}
	a, err := app.Load(c.App, app.Options{Secrets: secrets, LaxSecrets: true, Library: lualib.Open(log)})
	var mistakes app.Mistakes
	if err != nil && !errors.As(err, &mistakes) {
		return exit{2, fmt.Errorf("weir check: %w", err)}
	}
	if err == nil {
		for _, w := range a.Warnings {
			fmt.Fprintf(p.stderr, "%s (warning)\n", w)
		}
		mistakes = hostd.TryMigrations(a)
	}
	if len(mistakes) > 0 {
		return exit{1, errors.New(strings.TrimRight(mistakes.Error(), "\n"))}
	}
	if n := len(a.Warnings); n > 0 {
		fmt.Fprintf(p.stdout, "%s: no mistakes, %d to look at\n", a.Name, n)
		return nil
	}
	fmt.Fprintf(p.stdout, "%s: no mistakes\n", a.Name)
	return nil
}
