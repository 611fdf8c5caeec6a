package weaviatestore

// ServerOfTests returns where the server of the tests is.
func ServerOfTests() (string, error) { return running() }
