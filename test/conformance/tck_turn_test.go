package conformance

import (
	"strings"
	"testing"
)

func TestTCK_ACP_PROMPT_001(t *testing.T) {
	t.Parallel()
	scene{model: `text "ok"`, script: session + turn}.play(t)
}

func TestTCK_ACP_PROMPT_002(t *testing.T) {
	t.Parallel()
	o := scene{model: "thought \"Hm.\"\nchunks 200 \"tick \"", script: session + turn}.play(t)
	n := 0
	for _, m := range o.fromAgent() {
		if m.Method != "session/update" {
			continue
		}
		n++
		if id := text(m.Params, "sessionId"); id != o.vars["sid"] {
			t.Errorf("an update of session %s", id)
		}
	}
	if n < 2 {
		t.Errorf("%d updates", n)
	}
}

func TestTCK_ACP_PROMPT_003(t *testing.T) {
	t.Parallel()
	scene{model: "expect \"tck-example.txt\"\ntext \"ok\"", script: session + `> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"have a look at this"},{"type":"resource_link","uri":"file:///tmp/tck-example.txt","name":"example.txt"}]}
says "ok"
< {"stopReason":"end_turn"}
`}.play(t)
}

func TestTCK_ACP_PROMPTCAP_001(t *testing.T) {
	t.Parallel()
	unofferedBlock(t, "image", `{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}`)
}

func TestTCK_ACP_PROMPTCAP_002(t *testing.T) {
	t.Parallel()
	unofferedBlock(t, "audio", `{"type":"audio","mimeType":"audio/wav","data":"UklGRg=="}`)
}

// unofferedBlock proves that a kind of content is not advertised and refused.
func unofferedBlock(t *testing.T, kind, block string) {
	t.Helper()
	o := scene{script: session + `> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"describe"},` + block + `]}
< error {"code":-32602}
quiet
`}.play(t)
	if offered := in(o.capabilities(t), "promptCapabilities", kind); offered == true {
		t.Errorf("%s is advertised", kind)
	}
}

func TestTCK_ACP_PROMPTCAP_003(t *testing.T) {
	t.Parallel()
	o := scene{model: "expect \"some embedded context\"\nexpect \"context.txt\"\ntext \"ok\"", script: session + `> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"use this"},{"type":"resource","resource":{"uri":"file://$WORK/context.txt","text":"some embedded context","mimeType":"text/plain"}}]}
says "ok"
< {"stopReason":"end_turn"}
`}.play(t)
	if in(o.capabilities(t), "promptCapabilities", "embeddedContext") != true {
		t.Error("embeddedContext is not advertised")
	}
}

func TestTCK_ACP_CANCEL_001(t *testing.T) {
	t.Parallel()
	scene{model: `chunks 100000 "tick " every 5ms`, script: session + prompt + `<! session/update {"sessionId":"$sid"}
>! session/cancel {"sessionId":"$sid"}
loose
< @p {"stopReason":"cancelled"}
`}.play(t)
}

// The kit's two seconds of silence, with everything that could be late: text
// that streams, a call that waits for an answer, a model that does not listen.
func TestTCK_ACP_CANCEL_002(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		launch        launch
		model, before string
	}{
		"text":                   {model: `chunks 100000 "tick " every 5ms`},
		"a question":             {model: "text \"Let me.\"\ncall write_file {\"path\":\"a.txt\",\"content\":\"x\"}", before: "loose\n<? session/request_permission @q {\"sessionId\":\"$sid\"}\n"},
		"a model that goes deaf": {launch: broken()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene{
				launch: c.launch, model: c.model, watch: quietPeriod, want: map[string]string{"a.txt": "(absent)"},
				script: session + strings.Replace(prompt, "go", "deaf", 1) + `<! session/update {"sessionId":"$sid"}
` + c.before + `>! session/cancel {"sessionId":"$sid"}
loose
< @p {"stopReason":"cancelled"}
strict
quiet
`,
			}.play(t)
		})
	}
}
