package wire

// An Optional is a field that may be absent (wire 0.3). An empty value that is
// present is not an absent one.
type Optional[T any] struct {
	Value T
	Set   bool
}

// Some is a value that is present.
func Some[T any](v T) Optional[T] { return Optional[T]{Value: v, Set: true} }

// Get is the value and whether it is present.
func (o Optional[T]) Get() (T, bool) { return o.Value, o.Set }

// Or is the value, or absent when there is none.
func (o Optional[T]) Or(absent T) T {
	if o.Set {
		return o.Value
	}
	return absent
}
