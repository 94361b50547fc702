package config

// gatewayKeys are the settings of the daemon and of the bridge to it.
func gatewayKeys() []key {
	return []key{
		{
			path: "gateway.listen", kind: addresses{}, def: "127.0.0.1:8080", flag: "--listen",
			doc: "Address the daemon listens on: `host:port` or `unix:/path`. A non-loopback address needs TLS or `gateway.insecure`.",
			at:  func(t *target) any { return &t.cfg.Gateway.Listen },
		},
		{
			path: "gateway.auth", kind: oneOf{"token", "none"}, def: "token",
			doc: "How clients prove who they are. `none` is refused on a non-loopback address.",
			at:  func(t *target) any { return &t.cfg.Gateway.Auth },
		},
		{
			path: "gateway.allowed_origins", kind: lists{origins{}}, def: "[]",
			doc: "Browser origins that may connect besides the gateway's own.",
			at:  func(t *target) any { return &t.cfg.Gateway.AllowedOrigins },
		},
		{
			path: "gateway.allowed_hosts", kind: lists{hosts{}}, def: "[]",
			doc: "Host names that may be asked for besides loopback and the listen address, against DNS rebinding.",
			at:  func(t *target) any { return &t.cfg.Gateway.AllowedHosts },
		},
		{
			path: "gateway.tls_cert", kind: paths{},
			doc: "PEM file with the certificate chain; goes with `gateway.tls_key`.",
			at:  func(t *target) any { return &t.cfg.Gateway.TLSCert },
		},
		{
			path: "gateway.tls_key", kind: paths{},
			doc: "PEM file with the certificate's private key.",
			at:  func(t *target) any { return &t.cfg.Gateway.TLSKey },
		},
		{
			path: "gateway.insecure", kind: bools{}, def: "false",
			doc: "Allow a non-loopback address without TLS, for example behind a proxy that adds it.",
			at:  func(t *target) any { return &t.cfg.Gateway.Insecure },
		},
		{
			path: "gateway.max_message_bytes", kind: sizes{1 << 10, 1 << 30}, def: "32 MiB",
			doc: "Longest inbound message of a gateway connection.",
			at:  func(t *target) any { return &t.cfg.Gateway.MaxMessageBytes },
		},
		{
			path: "gateway.max_connections", kind: ints{1, 1_000_000}, def: "1024",
			doc: "Connections of the whole daemon.",
			at:  func(t *target) any { return &t.cfg.Gateway.MaxConnections },
		},
		{
			path: "gateway.max_connections_per_token", kind: ints{1, 1_000_000}, def: "20",
			doc: "Connections at a time that show the same token.",
			at:  func(t *target) any { return &t.cfg.Gateway.MaxConnectionsPerToken },
		},
		{
			path: "gateway.max_sessions", kind: ints{1, 1_000_000}, def: "4096",
			doc: "Active sessions of the whole daemon.",
			at:  func(t *target) any { return &t.cfg.Gateway.MaxSessions },
		},
		{
			path: "gateway.ping_interval_secs", kind: ints{1, 3600}, def: "30",
			doc: "Seconds between WebSocket pings.",
			at:  func(t *target) any { return &t.cfg.Gateway.PingInterval },
		},
		{
			path: "gateway.detach_grace_secs", kind: ints{0, 604_800}, def: "900",
			doc: "Seconds a running turn outlives its lost connection; 0 cancels it at once.",
			at:  func(t *target) any { return &t.cfg.Gateway.DetachGrace },
		},
		{
			path: "gateway.drain_secs", kind: ints{0, 3600}, def: "30",
			doc: "Seconds running turns may take to finish when the daemon is told to stop.",
			at:  func(t *target) any { return &t.cfg.Gateway.Drain },
		},
		{
			path: "bridge.url", kind: urls{schemes: []string{"ws", "wss", "http", "https"}, unix: true}, flag: "--url",
			doc: "Gateway that `berth bridge` connects to.",
			at:  func(t *target) any { return &t.cfg.Bridge.URL },
		},
		{
			path: "bridge.token", kind: secrets{},
			doc: "Token shown to that gateway.",
			at:  func(t *target) any { return &t.cfg.Bridge.Token },
		},
		{
			path: "bridge.token_file", kind: paths{}, flag: "--token-file",
			doc: "File that holds the token, in place of `bridge.token`.",
			at:  func(t *target) any { return &t.cfg.Bridge.TokenFile },
		},
		{
			path: "bridge.protocol", kind: oneOf{"acp", "openclaw"}, def: "acp", flag: "--protocol",
			doc: "What the gateway speaks.",
			at:  func(t *target) any { return &t.cfg.Bridge.Protocol },
		},
		{
			path: "bridge.tls_fingerprint", kind: fingerprints{},
			doc: "SHA-256 fingerprint the gateway's certificate must have.",
			at:  func(t *target) any { return &t.cfg.Bridge.TLSFingerprint },
		},
	}
}
