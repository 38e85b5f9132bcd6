package telemetry

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// A Definition is one metric as the reference page lists it.
type Definition struct {
	Name   string
	Type   string // counter, gauge, histogram or summary
	Labels []string
	Help   string
}

// A builder registers metrics and remembers their definitions.
type builder struct {
	registry *prometheus.Registry
	defs     []Definition
}

func (b *builder) define(name, kind, help string, labels []string) {
	b.defs = append(b.defs, Definition{Name: name, Type: kind, Labels: slices.Clone(labels), Help: help})
}

func (b *builder) counter(name, help string) prometheus.Counter {
	b.define(name, "counter", help, nil)
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	b.registry.MustRegister(c)
	return c
}

func (b *builder) counters(name, help string, labels ...string) *prometheus.CounterVec {
	b.define(name, "counter", help, labels)
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	b.registry.MustRegister(v)
	return v
}

func (b *builder) gauge(name, help string) prometheus.Gauge {
	b.define(name, "gauge", help, nil)
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	b.registry.MustRegister(g)
	return g
}

func (b *builder) latency(name, help string) *Latency {
	l := &Latency{desc: b.desc(name, "histogram", help)}
	b.registry.MustRegister(l)
	return l
}

// desc defines a metric whose values a collector reads at a scrape.
func (b *builder) desc(name, kind, help string, labels ...string) *prometheus.Desc {
	b.define(name, kind, help, labels)
	return prometheus.NewDesc(name, help, labels, nil)
}
