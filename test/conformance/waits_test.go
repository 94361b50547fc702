package conformance

// waits are the demands on what this version does not offer. The test of each
// proves that it is neither advertised nor there, and fails when that changes.
func waits() map[string]string {
	const (
		images    = "images are not advertised and get -32602"
		audio     = "audio is not advertised and gets -32602"
		modes     = "sessions have no modes; session/set_mode gets -32601"
		options   = "sessions have no config options; session/set_config_option gets -32601"
		terminals = "commands are not run, so no terminal is asked for"
		elicit    = "nothing is elicited; no client is sent one"
	)
	return map[string]string{
		"ACP-PROMPTCAP-001": images,
		"ACP-PROMPTCAP-002": audio,
		"ACP-MODES-001":     modes,
		"ACP-MODES-002":     modes,
		"ACP-CONFIG-001":    options,
		"ACP-CONFIG-002":    options,

		"051": "session/fork is not advertised and gets -32601",
		"054": "stdio servers are accepted and checked, and the client is told that their tools are off; HTTP and SSE are not advertised and get -32602",
		"129": "there are no subagents",
		"134": terminals,
		"135": terminals,
		"138": options,
		"139": options,
		"140": options,
		"142": modes + ", and " + options,
		"143": modes,
		"149": elicit,
		"150": elicit,
		"152": elicit,
		"153": elicit,
		"158": "_meta is accepted everywhere; trace context is not passed on to providers",
	}
}
