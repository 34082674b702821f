package dist

// OwnerAmong is the rank of key in a job of so many.
func OwnerAmong[K comparable, V any](m *Map[K, V], key K, ranks int) int {
	return ownerOf(m.keys.hash(&key), ranks)
}
