// Package controlplane makes an instance of the control plane from its
// configuration: it opens the store that the settings name and starts the
// service over it. The service itself is package
// github.com/felixlog/felix/controlplane.
package controlplane
