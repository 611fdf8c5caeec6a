package gateway

import (
	"errors"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/store"
)

var errSeveralUsers = errors.New("-learn is for one user, as all clients learn together: it does not go with -token-file, which may have the tokens of several")

// learning returns how searches learn from use, which a file keeps. Without a file, they don't.
func learning(file, tokenFile string) (*mcphybrid.LearnOptions, error) {
	switch {
	case file == "":
		return nil, nil
	case tokenFile != "":
		return nil, errSeveralUsers
	}
	return &mcphybrid.LearnOptions{Store: store.File(file)}, nil
}
