package text

import (
	"errors"
	"net/url"
)

// WithoutURL takes from err the URL of the request, which may hold a secret.
func WithoutURL(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}
