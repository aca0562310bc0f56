// Package settings is what the commands and services are set with, in one place: flags, which win over environment
// variables, and the limits. Flags and environment are read here and in main only.
package settings

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/pkg/app"
	"weir/pkg/failure"
)

// Limits are what bounds objects. Each is WEIR_LIMIT_<NAME> in the environment.
type Limits struct {
	CallTime      time.Duration `name:"limit-call-time" env:"WEIR_LIMIT_CALL_TIME" default:"10s" help:"How long one call may run, waiting for other objects included." group:"limits"`
	Instructions  int64         `name:"limit-instructions" env:"WEIR_LIMIT_INSTRUCTIONS" default:"10000000" help:"VM instructions that one call may use." group:"limits"`
	Mailbox       int           `name:"limit-mailbox" env:"WEIR_LIMIT_MAILBOX" default:"128" help:"Calls that may wait at one object." group:"limits"`
	Awake         int           `name:"limit-awake" env:"WEIR_LIMIT_AWAKE" default:"4000" help:"Objects awake at once; fewer if the descriptor limit allows no more." group:"limits"`
	Idle          time.Duration `name:"limit-idle" env:"WEIR_LIMIT_IDLE" default:"300s" help:"After this long without a call an object sleeps." group:"limits"`
	DatabaseBytes int64         `name:"limit-database-bytes" env:"WEIR_LIMIT_DATABASE_BYTES" default:"67108864" help:"Bytes of one object's database, its undelivered log not counted." group:"limits"`
	LogBytes      int64         `name:"limit-log-bytes" env:"WEIR_LIMIT_LOG_BYTES" default:"67108864" help:"Bytes of one object's undelivered events." group:"limits"`
}

// Heap is what bounds the memory of a process that runs app code.
type Heap struct {
	HeapBytes uint64 `name:"limit-heap-bytes" env:"WEIR_LIMIT_HEAP_BYTES" default:"0" help:"Heap of the process from which on the greediest call is cut off; 0: 70 % of the machine's memory." group:"limits"`
}

// Clients are what bounds a gateway's clients. Each is off at 0: a proxy before the gateway often does the same.
type Clients struct {
	Connections int   `name:"limit-address-connections" env:"WEIR_LIMIT_ADDRESS_CONNECTIONS" default:"0" help:"Websockets that one address may have open; 0: any number." group:"limits"`
	Frames      int   `name:"limit-frames" env:"WEIR_LIMIT_FRAMES" default:"0" help:"Frames a second that one websocket may send, pings and small fragments too, after as many at once; 0: any number." group:"limits"`
	FrameBytes  int64 `name:"limit-frame-bytes" env:"WEIR_LIMIT_FRAME_BYTES" default:"0" help:"Bytes a second that one websocket may send, after as many at once (at least one frame of 256 KiB); 0: any number." group:"limits"`
}

// Check says which limit makes no sense.
func (c Clients) Check() error {
	if c.Connections < 0 || c.Frames < 0 || c.FrameBytes < 0 {
		return fmt.Errorf("WEIR_LIMIT_ADDRESS_CONNECTIONS, WEIR_LIMIT_FRAMES and WEIR_LIMIT_FRAME_BYTES are positive, or 0 for no limit")
	}
	return nil
}

// Check says which limit makes no sense.
func (l Limits) Check() error {
	for name, bad := range map[string]bool{"CALL_TIME": l.CallTime <= 0, "INSTRUCTIONS": l.Instructions <= 0, "MAILBOX": l.Mailbox <= 0, "AWAKE": l.Awake <= 0,
		"IDLE": l.Idle <= 0, "DATABASE_BYTES": l.DatabaseBytes < 1<<20, "LOG_BYTES": l.LogBytes < 1<<20} {
		if bad {
			return fmt.Errorf("WEIR_LIMIT_%s must be positive, and a size at least 1 MiB", name)
		}
	}
	return nil
}

// known are the variables that a flag does not name itself.
var known = map[string]bool{"WEIR_NATS_URL": true, "WEIR_NATS_CREDS": true, "WEIR_APP": true, "WEIR_APP_NAME": true, "WEIR_DATA": true, "WEIR_LISTEN": true,
	"WEIR_ADMIN": true, "WEIR_SECRETS_DIR": true, "WEIR_ORIGINS": true, "WEIR_TRUSTED_PROXIES": true, "WEIR_LOG": true, "WEIR_DURABILITY": true,
	"WEIR_LIMIT_CALL_TIME": true, "WEIR_LIMIT_INSTRUCTIONS": true, "WEIR_LIMIT_MAILBOX": true, "WEIR_LIMIT_AWAKE": true, "WEIR_LIMIT_IDLE": true,
	"WEIR_LIMIT_DATABASE_BYTES": true, "WEIR_LIMIT_LOG_BYTES": true, "WEIR_LIMIT_HEAP_BYTES": true,
	"WEIR_LIMIT_ADDRESS_CONNECTIONS": true, "WEIR_LIMIT_FRAMES": true, "WEIR_LIMIT_FRAME_BYTES": true}

// CheckEnvironment refuses a WEIR_ variable that nothing reads: a misspelt one would be silently without effect.
func CheckEnvironment(env []string) error {
	var unknown []string
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "WEIR_") && !known[name] && !strings.HasPrefix(name, "WEIR_SECRET_") {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	sort.Strings(unknown)
	return fmt.Errorf("unknown setting %s: `weir dev --help` lists all", strings.Join(unknown, ", "))
}

// Secrets reads an app's secrets: from WEIR_SECRET_<NAME>, or the file of that name in dir, which must be there unless it
// is empty.
func Secrets(getenv func(string) (string, bool), dir string) (func(string) (string, bool), error) {
	if info, err := os.Stat(dir); dir != "" && (err != nil || !info.IsDir()) {
		return nil, fmt.Errorf("the folder of secrets %s is not there: WEIR_SECRETS_DIR or --secrets names one, or nothing", dir)
	}
	return func(name string) (string, bool) {
		if v, ok := getenv(app.SecretVariable(name)); ok {
			return v, true
		}
		if dir == "" || name != filepath.Base(name) {
			return "", false
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		return strings.TrimRight(string(b), "\r\n"), err == nil
	}, nil
}

// Log makes the log of a process: text for a person, at a level by its name.
func Log(level string, w *os.File, json bool) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("WEIR_LOG is debug, info, warn or error, not %q", level)
	}
	o := &slog.HandlerOptions{Level: l}
	if json {
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return slog.New(failure.Log(w, l)), nil
}

// RaiseDescriptors takes as many descriptors as the system gives, and says how many objects may be awake with them:
// each has up to three files, and sockets need theirs.
func RaiseDescriptors(awake int) int {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return awake
	}
	r.Cur = r.Max
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &r)
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil || r.Cur > 1<<30 {
		return awake
	}
	return max(16, min(awake, (int(r.Cur)-1024)/4))
}

// HeapLimit gives the limit of the heap watch: as set, or 70 % of the machine's or the control group's memory.
func HeapLimit(set uint64) uint64 {
	if set != 0 {
		return set
	}
	memory := uint64(4 << 30)
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		memory = info.Totalram * uint64(info.Unit)
	}
	if b, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		var group uint64
		if _, err := fmt.Sscan(string(b), &group); err == nil && group > 0 {
			memory = min(memory, group)
		}
	}
	return memory / 10 * 7
}
