// Package bench measures the way from a publish to browsers' sockets beside a bare loop that writes: `make bench`.
package bench
