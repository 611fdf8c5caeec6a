package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
)

const (
	noCache = "off" // for -cache

	// cachePattern matches the files that we make in the user's cache folder.
	cachePattern = "gateway-*.json"

	// cacheAge is how long such a file stays that no gateway uses.
	cacheAge = 90 * 24 * time.Hour
)

// cacheStore returns where the servers' lists are kept: nowhere, in a file, or by default
// in one of the user's cache folder that belongs to the configuration.
func cacheStore(file, config string) (store.Document, error) {
	switch file {
	case noCache:
		return nil, nil
	case "":
		folder, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		if file, err = cacheFile(filepath.Join(folder, "mcphybrid"), config); err != nil {
			return nil, err
		}
	}
	return store.File(file), nil
}

// cacheFile returns the file of a configuration in a folder, which it makes if need be. It
// removes old ones. Two configurations do not share one: servers of one name may differ.
func cacheFile(folder, config string) (string, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(absolute(config)))
	file := filepath.Join(folder, "gateway-"+hex.EncodeToString(sum[:8])+".json")
	now := time.Now()
	if err := os.Chtimes(file, now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	list, _ := os.ReadDir(folder)
	for _, e := range list {
		ours, _ := filepath.Match(cachePattern, e.Name())
		if info, err := e.Info(); ours && err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > cacheAge {
			old := filepath.Join(folder, e.Name())
			_ = errors.Join(os.Remove(old), os.Remove(old+".lock"), os.RemoveAll(old+".parts"))
		}
	}
	return file, nil
}
