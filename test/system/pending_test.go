//go:build pending

package system

import (
	"testing"

	"weir/test/testkit"
)

// TestPending runs the scripts that the product does not fulfil yet; each says in its first line what is missing:
//
//	go test -tags pending -run TestPending ./test/system
func TestPending(t *testing.T) { testkit.Scripts(t, "pending/*.txtar") }
