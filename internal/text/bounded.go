package text

// MaxError is the greatest length of an error that a server may have written, in
// characters.
const MaxError = 2000

// Bounded returns err, or, if its text has more than [MaxError] bytes, an error
// that wraps err and whose text is one line of at most MaxError characters.
func Bounded(err error) error {
	if err == nil || len(err.Error()) <= MaxError {
		return err
	}
	return &boundedError{err, Line(err.Error(), MaxError)}
}

type boundedError struct {
	err  error
	text string
}

func (e *boundedError) Error() string { return e.text }
func (e *boundedError) Unwrap() error { return e.err }
