package figures

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLabelsAreEscaped(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	Exposition{&b}.Sample("x", 0.5, "server", "a\"b\\c\nd\xff")
	assert.Equal(t, "mcphybrid_gateway_x{server=\"a\\\"b\\\\c\\nd\uFFFD\"} 0.5\n", b.String())
}

// What is exposed is what was counted: by server and outcome, and up to each bound.
func TestExpose(t *testing.T) {
	t.Parallel()
	f := New()
	f.Count("b", OK, 25*time.Millisecond)
	f.Count("b", OK, 25*time.Millisecond+1)
	f.Count("b", Failed, 2*time.Minute)
	f.Count("", Refused, 0)
	f.CountUnauthorized()
	f.CountUnauthorized()
	var b strings.Builder
	e := NewExposition(&b)
	f.Expose(e)
	e.Gauge("sessions", "How many there are.", 3)
	var bounds []string
	for le, n := range []int{0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3} {
		bounds = append(bounds, fmt.Sprintf("mcphybrid_gateway_call_duration_seconds_bucket{server=\"b\",le=\"%s\"} %d\n", strings.Fields("0.005 0.025 0.1 0.25 0.5 1 2.5 5 10 30 60 +Inf")[le], n))
	}
	assert.Contains(t, b.String(), strings.Join(bounds, "")+"mcphybrid_gateway_call_duration_seconds_sum{server=\"b\"} 120.050000001\nmcphybrid_gateway_call_duration_seconds_count{server=\"b\"} 3\n")
	for _, line := range []string{
		"# TYPE mcphybrid_gateway_calls_total counter\nmcphybrid_gateway_calls_total{server=\"\",outcome=\"refused\"} 1\nmcphybrid_gateway_calls_total{server=\"b\",outcome=\"ok\"} 2\nmcphybrid_gateway_calls_total{server=\"b\",outcome=\"failed\"} 1\n# HELP ",
		"mcphybrid_gateway_unauthorized_total 2\n",
		"# HELP mcphybrid_gateway_sessions How many there are.\n# TYPE mcphybrid_gateway_sessions gauge\nmcphybrid_gateway_sessions 3\n",
		"mcphybrid_gateway_call_duration_seconds_count{server=\"\"} 1\n",
	} {
		assert.Contains(t, b.String(), line)
	}
}
