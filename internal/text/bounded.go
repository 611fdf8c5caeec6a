package text

// MaxError is how many characters of an error are kept that a server may
// have written.
const MaxError = 2000

// bounded returns err with a text of bounded length in one line, if it is
// longer than that.
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
