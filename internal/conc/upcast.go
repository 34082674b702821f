package conc

// UpcastSlice is l as a slice of interface T, which E must implement; nil if err is not.
func UpcastSlice[T, E any](l []E, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	up := make([]T, len(l))
	for i, e := range l {
		up[i] = any(e).(T)
	}
	return up, nil
}

// UpcastOne is e as interface T, which E must implement; the nil interface if err is not nil,
// and not one that holds a nil pointer.
func UpcastOne[T, E any](e E, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return any(e).(T), nil
}
