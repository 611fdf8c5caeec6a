package mcpanthropic_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/mcphybrid/mcphybrid"
	mcpanthropic "github.com/mcphybrid/mcphybrid/adapters/anthropic"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/require"
)

// Each answer is counted once, with the reason of a lost cache. A stream that breaks off is
// not, and neither is an answer that does not say what it took.
func TestUsage(t *testing.T) {
	t.Parallel()
	const lost = `"diagnostics":{"cache_miss_reason":{"type":"model_changed","cache_missed_input_tokens":3000}}`
	usages := []string{ // those of answers, in their order
		`"usage":{"input_tokens":10,"cache_creation_input_tokens":3000,"output_tokens":5}`,
		`"usage":{"input_tokens":20,"cache_read_input_tokens":1000,"cache_creation_input_tokens":2000,"output_tokens":6},` + lost,
		`"usage":{}`,
		`"usage":{"input_tokens":30,"cache_read_input_tokens":3000,"output_tokens":7}`, // of a stream that breaks off
	}
	for _, streams := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream %t", streams), func(t *testing.T) {
			t.Parallel()
			n := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				n++
				message := `{"id":"1","type":"message","role":"assistant","model":"m","content":[%s],"stop_reason":%s,` + usages[n-1] + `}`
				if !streams {
					w.Header().Set("Content-Type", "application/json")
					_, _ = fmt.Fprintf(w, message, `{"type":"text","text":"Hi."}`, `"end_turn"`)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, output, _ := strings.Cut(usages[n-1], `"output_tokens":`)
				output, _, _ = strings.Cut(output, "}")
				_, _ = io.WriteString(w, "event: message_start\ndata: "+`{"type":"message_start","message":`+strings.Replace(fmt.Sprintf(message, "", "null"), `"output_tokens":`+output, `"output_tokens":1`, 1)+"}\n\n"+
					"event: content_block_start\ndata: "+`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi."}}`+"\n\n")
				if n == 4 {
					return
				}
				if output == "" {
					output = "0"
				}
				_, _ = io.WriteString(w, "event: message_delta\ndata: "+`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":`+output+`}}`+"\n\n"+
					"event: message_stop\ndata: "+`{"type":"message_stop"}`+"\n\n")
			}))
			defer srv.Close()
			var losses []snapshot.Loss
			mgr := mcphybrid.NewManager(&mcphybrid.Options{OnEvent: func(e mcphybrid.Event) {
				if e.Kind == mcphybrid.EventCacheLost {
					losses = append(losses, e.Loss)
				}
			}})
			defer mgr.Close()
			s := mgr.NewSession(nil)
			client := anthropic.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("none"))
			params := anthropic.BetaToolRunnerParams{}
			params.Messages = []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Go."))}
			run := func() (err error) {
				if !streams {
					_, err = mcpanthropic.NewToolRunner(&client, s, params).RunToCompletion(t.Context())
					return err
				}
				for _, err := range mcpanthropic.NewToolRunnerStreaming(&client, s, params).All(t.Context()) {
					if err != nil {
						return err
					}
				}
				return nil
			}
			for range 3 {
				require.NoError(t, run())
			}
			if streams {
				require.ErrorContains(t, run(), "broke off")
			}
			require.Equal(t, snapshot.Measured{Requests: 2, Input: 6030, Cached: 1000, Written: 5000, Output: 11, Losses: 1, Lost: 2000}, s.Stats().Measured)
			require.Len(t, losses, 1)
			require.Equal(t, snapshot.LossProvider, losses[0].Cause)
			require.Equal(t, "model_changed", losses[0].Miss)
		})
	}
}
