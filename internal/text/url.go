package text

import (
	"errors"
	"net/url"
)

// WithoutURL removes the URL of the request, which may hold a secret, from err.
func WithoutURL(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}
