package cache

import "github.com/felixlog/felix/broker/steady"

// A Clock tells the time and calls back.
type Clock = steady.Source
