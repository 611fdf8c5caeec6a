package mcphybrid

import "os"

type Store interface {
	Load() ([]byte, error)
	Save(data []byte) error
}
type fileStore string

func FileStore(path string) Store { return fileStore(path) }
func (f fileStore) Load() ([]byte, error) {
	b, err := os.ReadFile(string(f))
	if os.IsNotExist(err) {
		return nil, nil
	}
	return b, err
}
func (f fileStore) Save(data []byte) error { return os.WriteFile(string(f), data, 0o600) }
