package system

import (
	"testing"

	"weir/test/testkit"
)

// TestScripts runs the rules of the specification as scripts: an app, what is done to it, and what must come of it.
func TestScripts(t *testing.T) { testkit.Scripts(t, "testdata/*.txtar") }
