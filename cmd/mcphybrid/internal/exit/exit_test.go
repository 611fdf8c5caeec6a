package exit

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a command says of its end, and its status, depend on what ended it.
func TestEnds(t *testing.T) {
	t.Parallel()
	luck := errors.New("no luck")
	for _, test := range []struct {
		err          error
		with, failed int
		says         string
	}{
		{nil, 0, 0, ""},
		{flag.ErrHelp, 0, 0, ""},
		{luck, 1, 1, "x: no luck\n"},
		{errors.New("mcphybrid: nope.json: no such file"), 1, 1, "x: nope.json: no such file\n"},
		{fmt.Errorf("a file: %w", Unusable(luck)), 2, 2, "x: a file: no luck\n"},
		{Unusable(flag.ErrHelp), 0, 0, ""},
	} {
		errs, err := os.Create(filepath.Join(t.TempDir(), "err"))
		require.NoError(t, err)
		defer errs.Close()
		assert.Equal(t, test.with, With(test.err, "x", errs))
		assert.Equal(t, test.failed, Failed(test.err, "x", errs))
		said, err := os.ReadFile(errs.Name())
		require.NoError(t, err)
		assert.Equal(t, test.says+test.says, string(said))
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	assert.Equal(t, 1, With(ErrFound, "x", null))
}

// Each of several errors is a line, also of those within.
func TestReportOfSeveral(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	Report(&b, "x", errors.Join(errors.New("one"), errors.Join(errors.New("two\nlines"), errors.New("three"))))
	assert.Equal(t, "x: one\nx: two\\u000alines\nx: three\n", b.String())
}
