package config

// telemetryKeys are the settings of traces. Without an endpoint there are none.
func telemetryKeys() []key {
	return []key{
		{
			path: "telemetry.endpoint", kind: urls{schemes: []string{"http", "https"}},
			doc: "Collector that traces are sent to, as OTLP in JSON over HTTP; `/v1/traces` is added unless it is there. Without it nothing is traced or sent. Variables such as `OTEL_EXPORTER_OTLP_ENDPOINT` are not read.",
			at:  func(t *target) any { return &t.cfg.Telemetry.Endpoint },
		},
		{
			path: "telemetry.header", kind: secrets{},
			doc: "A header sent to the collector, as `Name: value`, such as one with its key.",
			at:  func(t *target) any { return &t.cfg.Telemetry.Header },
		},
		{
			path: "telemetry.service", kind: texts{}, def: "berth",
			doc: "Name of this service in traces (`service.name`).",
			at:  func(t *target) any { return &t.cfg.Telemetry.Service },
		},
		{
			path: "telemetry.sample", kind: floats{0, 1}, def: "1",
			doc: "Share of turns that are traced. A prompt whose `_meta.traceparent` says whether it is traced decides for itself.",
			at:  func(t *target) any { return &t.cfg.Telemetry.Sample },
		},
		{
			path: "telemetry.content", kind: bools{}, def: "false",
			doc: "Send what is said, too: prompts, answers, arguments and results of tools, each cut at 16 KiB.",
			at:  func(t *target) any { return &t.cfg.Telemetry.Content },
		},
	}
}
