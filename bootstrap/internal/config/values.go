package config

// SecretValues returns the values of all secrets that can be read, for the
// filters that keep them out of logs. It reads secret files, so it is not for
// the start.
func (c *Config) SecretValues() []string {
	var values []string
	add := func(s Secret) {
		if v, err := s.Reveal(); err == nil && v != "" {
			values = append(values, v)
		}
	}
	for _, s := range c.settings {
		if secret, ok := s.value.(Secret); ok {
			add(secret)
		}
	}
	for _, key := range c.ambient.keys {
		add(key)
	}
	return values
}
