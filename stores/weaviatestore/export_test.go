package weaviatestore

// ServerOfTests returns the address of the tests' server.
func ServerOfTests() (string, error) { return running() }
