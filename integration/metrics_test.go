package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	prometheus "github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The metrics of the gateway are read by the parser of Prometheus itself.
func TestGatewayMetrics(t *testing.T) {
	url := startGateway(t, writeConfig(t, everything()), "-metrics")
	header := map[string]string{"Authorization": "Bearer " + gatewayToken}
	over, err := transport.NewStreamableHTTP(url, transport.WithHTTPHeaders(header))
	require.NoError(t, err)
	c := client.NewClient(over)
	require.NoError(t, c.Start(t.Context()))
	defer c.Close()
	_, err = c.Initialize(t.Context(), mcp.InitializeRequest{})
	require.NoError(t, err)
	var call mcp.CallToolRequest
	call.Params.Name, call.Params.Arguments = "mcp_everything__echo", map[string]any{"message": "hello"}
	for range 3 {
		result, err := c.CallTool(t.Context(), call)
		require.NoError(t, err)
		require.False(t, result.IsError)
	}

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(url, "/mcp")+"/metrics", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", header["Authorization"])
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	assert.Equal(t, expfmt.TypeTextPlain, expfmt.ResponseFormat(resp.Header).FormatType())
	parser := expfmt.NewTextParser(prometheus.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	require.NoError(t, err)
	for name, family := range families {
		assert.True(t, strings.HasPrefix(name, "mcphybrid_gateway_"), name)
		assert.NotEmpty(t, family.GetHelp(), name)
		assert.NotEqual(t, dto.MetricType_UNTYPED, family.GetType(), name)
	}
	calls := families["mcphybrid_gateway_calls_total"].GetMetric()
	require.Len(t, calls, 1)
	assert.Equal(t, 3.0, calls[0].GetCounter().GetValue())
	took := families["mcphybrid_gateway_call_duration_seconds"].GetMetric()
	require.Len(t, took, 1)
	h := took[0].GetHistogram()
	assert.Equal(t, uint64(3), h.GetSampleCount())
	buckets := h.GetBucket()
	assert.Equal(t, uint64(3), buckets[len(buckets)-1].GetCumulativeCount())
	for i, b := range buckets[1:] {
		assert.GreaterOrEqual(t, b.GetCumulativeCount(), buckets[i].GetCumulativeCount())
	}
}
