// Package upcast hands what a function returns as values of its own type on as values
// of an interface, together with the error.
package upcast

// Slice is l as a slice of interface T, which E must implement; nil if err is not.
func Slice[T, E any](l []E, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	up := make([]T, len(l))
	for i, e := range l {
		up[i] = any(e).(T)
	}
	return up, nil
}

// One is e as interface T, which E must implement; the nil interface if err is not nil,
// and not one that holds a nil pointer.
func One[T, E any](e E, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return any(e).(T), nil
}
