// Package bench measures the core beside its raw limits, in the same run: `make bench`.
package bench
