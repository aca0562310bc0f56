// Package obs is what operators see of a service: Prometheus metrics, and health on an admin port. Metrics carry the
// labels app, service and class, never an object's name. Everything here is safe for concurrent use.
package obs

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"weir/pkg/wire"
)

// Metrics are those of one service of an app.
type Metrics struct {
	registry   *prometheus.Registry
	calls      *prometheus.CounterVec
	callTime   *prometheus.HistogramVec
	deliveries *prometheus.CounterVec
	drops      *prometheus.CounterVec
	wakes      *prometheus.CounterVec
	rebuilds   *prometheus.CounterVec
	barrier    prometheus.Histogram
	overflows  prometheus.Counter
}

// New makes the metrics of a service.
func New(app, service string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	labels := prometheus.Labels{"app": app, "service": service}
	r := prometheus.WrapRegistererWith(labels, m.registry)
	counter := func(name, help string, by ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, by)
		r.MustRegister(c)
		return c
	}
	m.calls = counter("weir_calls_total", "Calls of methods, by what came of them: ok, raised, or the platform's code.", "class", "outcome")
	m.deliveries = counter("weir_deliveries_total", "Attempts to deliver an event to an object: applied or failed. A failed one is retried.", "class", "verdict")
	m.drops = counter("weir_edges_dropped_total", "Edges given up after the last failed attempt.", "class")
	m.wakes = counter("weir_wakes_total", "Objects woken.", "class")
	m.rebuilds = counter("weir_streams_rebuilt_total", "Streams made anew after a loss.", "class")
	m.callTime = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "weir_call_seconds", Help: "Time of a call from its arrival at the host to its commit.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 3, 12)}, []string{"class"})
	m.barrier = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "weir_barrier_seconds", Help: "Time to make commits durable.",
		Buckets: prometheus.ExponentialBuckets(0.00005, 3, 12)})
	m.overflows = prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_socket_overflows_total", Help: "Sockets closed because more came than they could take."})
	r.MustRegister(m.callTime, m.barrier, m.overflows)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Gauge adds a value that is read when it is asked for.
func (m *Metrics) Gauge(app, service, name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help,
		ConstLabels: prometheus.Labels{"app": app, "service": service}}, read))
}

// Called counts a call.
func (m *Metrics) Called(class string, took time.Duration, err *wire.Error) {
	outcome := "ok"
	if err != nil {
		if outcome = string(err.Code); outcome == "" {
			outcome = "raised"
		}
	}
	m.calls.WithLabelValues(class, outcome).Inc()
	m.callTime.WithLabelValues(class).Observe(took.Seconds())
}

// Delivered counts an attempt to deliver.
func (m *Metrics) Delivered(class, verdict string) {
	m.deliveries.WithLabelValues(class, verdict).Inc()
}

// Dropped counts an edge given up.
func (m *Metrics) Dropped(class string) { m.drops.WithLabelValues(class).Inc() }

// Woken counts an object woken.
func (m *Metrics) Woken(class string) { m.wakes.WithLabelValues(class).Inc() }

// Rebuilt counts a stream made anew.
func (m *Metrics) Rebuilt(class string) { m.rebuilds.WithLabelValues(class).Inc() }

// Barrier observes the time of a barrier.
func (m *Metrics) Barrier(took time.Duration) { m.barrier.Observe(took.Seconds()) }

// Overflowed counts a socket closed for what it could not take.
func (m *Metrics) Overflowed() { m.overflows.Inc() }

// Check is one thing that must be so for a service to be ready. It must return soon.
type Check func(context.Context) error

// Admin serves /healthz (the process lives), /readyz (every check passes) and /metrics.
func (m *Metrics) Admin(ready func() []Check) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		for _, check := range ready() {
			if err := check(ctx); err != nil {
				http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	return mux
}
