package clients

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// serve opens the sockets, says that it is ready, and counts until its standard input ends.
func serve(o order) error {
	counted, err := counter(o.Counter)
	if err != nil {
		return err
	}
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	for range o.Count {
		fd, early, err := dial(o)
		if err != nil {
			return err
		}
		counted.bytes.Add(int64(len(early)))
		counted.marks.Add(int64(bytes.Count(early, []byte{Mark})))
		if o.Deaf {
			continue
		}
		if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			return err
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println("ready")
	return read(poll, counted)
}

// dial opens one socket. early is what came with the handshake's answer.
func dial(o order) (fd int, early []byte, err error) {
	c, err := net.Dial("tcp", o.Addr)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = c.Close() }() // its descriptor is doubled below
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n", o.Path, o.Addr); err != nil {
		return 0, nil, err
	}
	buf, n := make([]byte, 4096), 0
	for {
		got, err := c.Read(buf[n:])
		n += got
		head, rest, ok := bytes.Cut(buf[:n], []byte("\r\n\r\n"))
		if ok {
			if !strings.HasPrefix(string(head), "HTTP/1.1 101 ") {
				return 0, nil, fmt.Errorf("the server answered %q", head)
			}
			early = rest
			break
		}
		if err != nil {
			return 0, nil, err
		}
	}
	if o.Hello != "" {
		if _, err := c.Write(frame(o.Hello)); err != nil {
			return 0, nil, err
		}
	}
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	fd, err = unix.Dup(int(f.Fd()))
	return fd, early, errors.Join(err, unix.SetNonblock(fd, true))
}

// frame is a client's text frame, its mask of zeroes.
func frame(text string) []byte {
	b := []byte{0x81, 0x80 | byte(len(text))}
	if len(text) > 125 {
		b = binary.BigEndian.AppendUint16([]byte{0x81, 0xfe}, uint16(len(text)))
	}
	return append(append(b, 0, 0, 0, 0), text...)
}

func read(poll int, counted *counts) error {
	events := make([]unix.EpollEvent, 512)
	buf := make([]byte, 256<<10)
	for {
		n, err := unix.EpollWait(poll, events, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		for _, e := range events[:max(0, n)] {
			got, err := unix.Read(int(e.Fd), buf)
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil || got == 0 {
				_ = unix.Close(int(e.Fd)) // takes it out of the poll, too
				continue
			}
			counted.bytes.Add(int64(got))
			counted.marks.Add(int64(bytes.Count(buf[:got], []byte{Mark})))
		}
	}
}
