package architecture

// exceptions are the places where a rule does not hold, each with its reason.
// One that is not needed is a violation of its rule.
type exceptions struct {
	goroutines map[string]string // file -> who owns, stops and joins them
	globals    map[string]string // directory.Name -> why nobody changes it
	stdout     map[string]string // file -> why it writes there
	json       map[string]string // file below core/services -> why it knows JSON, tags included
}

// allowed are the exceptions of this repository.
func allowed() exceptions {
	return exceptions{
		goroutines: map[string]string{
			"adapters/acpclient/client.go":       "serves the connection; Close ends and joins it",
			"adapters/acpclient/process.go":      "waits for the agent's exit, joined by Stop and Kill; Interrupted's watch of a context is stopped by who asked for it",
			"cmd/berth/demo.go":                  "the turn that the demo cancels; joined by the step that asked for it",
			"adapters/fs/sweep.go":               "up to seven helpers of one glob or search; they end with its work, its context or its budget, and run joins them",
			"adapters/keyring/keyring.go":        "one call of the key store; joined when it answers within the limit, and one at most is left to a key store that hangs",
			"adapters/llm/exchange.go":           "the watch's timer, created stopped, cancels the exchange it belongs to and ends with it",
			"adapters/observe/observe.go":        "Close lets a log that nobody reads keep one goroutine instead of the process; it waits for a bounded time",
			"bootstrap/gatewaykeys.go":           "follows the file of tokens; the lifecycle's stop hook ends and joins it",
			"bootstrap/bridge.go":                "waits for the signal that ends the process, and for the second one; it ends with the process",
			"adapters/traces/export.go":          "sends spans to the collector, from the first one on; Close ends and joins it within its context",
			"bootstrap/drain.go":                 "the drain, which ends with its context and whose end finish awaits or the process does not outlive; the watch of a second signal, which ends with run",
			"bootstrap/pulse.go":                 "one timer, which the runtime needs as long as the process lasts",
			"bootstrap/models.go":                "one question per provider, each with a limit of its own; joined before the answers are looked at",
			"bootstrap/store.go":                 "openLate opens the store behind initialize; the goroutine ends when open returns and Close joins it",
			"core/services/sessions/chores.go":   "what the service frees or waits for behind its answers; each is bounded, Shutdown joins them",
			"core/services/sessions/ask.go":      "one question, one goroutine for each client that is asked; they end with its context, and Ask joins them",
			"core/services/sessions/editor.go":   "who looks after one call of an editor; it ends with the call, which joins it",
			"core/services/sessions/lose.go":     "the grace timer of a slot; armed and stopped with the slot's state, and asks under the registry's mutex whether it still counts",
			"core/services/sessions/observe.go":  "the watch that ends the beginning of an observation with the watcher's time; it only cancels a context, and is stopped when the beginning returns",
			"core/services/sessions/oust.go":     "the timer that sees whether a client is stuck whose session another takes; stopped by the take that armed it, and asks under the attachment's mutex whether it still counts",
			"core/services/sessions/registry.go": "the idle timer of a slot; armed, reset and stopped with the slot's state, and setAside asks that state again",
		},
		globals: map[string]string{},
		stdout: map[string]string{
			"cmd/berth/main.go":            "gives the stream to the root command, so that every command prints to a writer; acp takes it away before it serves",
			"cmd/berth-acp-bridge/main.go": "gives the stream to the command's help; the bridge takes it away before it serves",
			"cmd/berth/probe.go":           "probe record stands in for the agent it starts and passes its frames on",
			"bootstrap/stdout_windows.go":  "takes the stream for the transport and points everything else at standard error",
		},
		json: map[string]string{
			"core/services/turns/plan.go": "update_plan needs the engine, so it lives beside it; its arguments are a model's JSON",
		},
	}
}

// stale returns a violation for every exception that was not needed.
func stale(rule string, table map[string]string, used map[string]bool) []violation {
	var bad []violation
	for key, reason := range table {
		switch {
		case reason == "":
			bad = append(bad, violation{key, "the exception to " + rule + " gives no reason"})
		case !used[key]:
			bad = append(bad, violation{key, "the exception to " + rule + " is not needed any more; remove it from exceptions_test.go"})
		}
	}
	return bad
}
