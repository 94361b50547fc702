package turns

import (
	"testing"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

func TestPlanTool_Conformance(t *testing.T) {
	porttest.Tool(porttest.T(t), porttest.ToolHarness{Open: func(porttest.TB) porttest.ToolFixture {
		return porttest.ToolFixture{
			Tool: planTool{},
			Call: domain.ToolCall{Session: "s", Turn: "t", ID: "c", Name: "update_plan", Args: []byte(`{"entries":[{"content":"a","status":"pending"}]}`)},
			Wrong: map[string]string{
				"no entries":         `{"entries":[]}`,
				"an empty entry":     `{"entries":[{"content":" ","status":"pending"}]}`,
				"no status":          `{"entries":[{"content":"a"}]}`,
				"an unknown status":  `{"entries":[{"content":"a","status":"done"}]}`,
				"a priority":         `{"entries":[{"content":"a","status":"pending","priority":"urgent"}]}`,
				"two at once":        `{"entries":[{"content":"a","status":"in_progress"},{"content":"b","status":"in_progress"}]}`,
				"an unknown member":  `{"entries":[{"content":"a","status":"pending","x":1}]}`,
				"no list":            `{"entries":"a"}`,
				"nothing it expects": `{}`,
			},
			State: func() string { return "" }, // a plan is set by its result alone
		}
	}})
}
