package store

// childMain is replaced below.
func childMain() bool { return false }
