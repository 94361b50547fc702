package config

// providerKeys are the settings of providers.<name>.
func providerKeys() []key {
	types := make(oneOf, 0, 11)
	for _, t := range ProviderTypes() {
		types = append(types, t.Name)
	}
	return []key{
		{
			path: "providers.<name>.type", kind: types,
			doc: "What the provider speaks. It may be left out where the name is a type.",
			at:  func(t *target) any { return &t.provider.Type },
		},
		{
			path: "providers.<name>.base_url", kind: urls{schemes: []string{"http", "https"}},
			doc: "Address of the API. Required for `openai-compatible`; other types know theirs.",
			at:  func(t *target) any { return &t.provider.BaseURL },
		},
		{
			path: "providers.<name>.api_key", kind: secrets{},
			doc: "Key of the API. Without it, at the type's own address, the environment variable that is usual for the type; then the key that `berth login` stored.",
			at:  func(t *target) any { return &t.provider.APIKey },
		},
		{
			path: "providers.<name>.headers.<Header>", kind: secrets{inMap: true},
			doc: "A header sent with each request.",
			at:  func(t *target) any { return secretSlot{&t.provider.Headers, t.verbatim} },
		},
		{
			path: "providers.<name>.timeout_secs", kind: ints{1, 3600}, def: "120",
			doc: "Seconds until the first byte of an answer. Streams have a limit of their own between events.",
			at:  func(t *target) any { return &t.provider.Timeout },
		},
		{
			path: "providers.<name>.max_retries", kind: ints{0, 20}, def: "3",
			doc: "Tries after the first one, before anything of an answer was seen.",
			at:  func(t *target) any { return &t.provider.MaxRetries },
		},
		{
			path: "providers.<name>.fallback", kind: lists{models{}}, def: "[]",
			doc: "Models to ask, in this order, when the provider cannot be reached, asks to wait, or its account is spent. Not for a wrong key or a refused request.",
			at:  func(t *target) any { return &t.provider.Fallback },
		},
		{
			path: "providers.<name>.ca_file", kind: paths{},
			doc: "PEM file with the certificates of authorities to trust besides those of the system, such as a company's own. For all providers at once there is the system's own store.",
			at:  func(t *target) any { return &t.provider.CAFile },
		},
		{
			path: "providers.<name>.script", kind: paths{},
			doc: "Script file that a provider of type `scripted` plays.",
			at:  func(t *target) any { return &t.provider.Script },
		},
		{
			path: "providers.<name>.models.<model>.context_window", kind: ints{1, 1_000_000_000},
			doc: "Tokens the model can read.",
			at:  func(t *target) any { return &t.model.ContextWindow },
		},
		{
			path: "providers.<name>.models.<model>.max_output_tokens", kind: ints{1, 100_000_000},
			doc: "Tokens the model can write in one reply.",
			at:  func(t *target) any { return &t.model.MaxOutputTokens },
		},
		{
			path: "providers.<name>.models.<model>.images", kind: bools{},
			doc: "Whether the model sees pictures. Without it, what the catalogue knows.",
			at:  func(t *target) any { return maybe{&t.model.Images} },
		},
		{
			path: "providers.<name>.models.<model>.audio", kind: bools{},
			doc: "Whether the model hears sounds. Without it, what the catalogue knows.",
			at:  func(t *target) any { return maybe{&t.model.Audio} },
		},
		{
			path: "providers.<name>.models.<model>.thoughts", kind: bools{},
			doc: "Whether the model can be told how much to think. Without it, what the catalogue knows.",
			at:  func(t *target) any { return maybe{&t.model.Thoughts} },
		},
		{
			path: "providers.<name>.models.<model>.input_price", kind: floats{0, 1e6},
			doc: "US dollars per million tokens read.",
			at:  func(t *target) any { return &t.model.InputPrice },
		},
		{
			path: "providers.<name>.models.<model>.output_price", kind: floats{0, 1e6},
			doc: "US dollars per million tokens written.",
			at:  func(t *target) any { return &t.model.OutputPrice },
		},
		{
			path: "providers.<name>.models.<model>.cache_read_price", kind: floats{0, 1e6},
			doc: "US dollars per million tokens read from the provider's cache.",
			at:  func(t *target) any { return &t.model.CacheReadPrice },
		},
		{
			path: "providers.<name>.models.<model>.cache_write_price", kind: floats{0, 1e6},
			doc: "US dollars per million tokens written to the provider's cache.",
			at:  func(t *target) any { return &t.model.CacheWritePrice },
		},
	}
}
