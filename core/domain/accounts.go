package domain

// Usage returns the tokens now in context, the model's window, and the sum
// over all requests. Window is 0 when unknown.
func (c *Conversation) Usage() (used, window int64, total Usage) { return c.used, c.window, c.total }

// Cost returns what all requests cost, as far as it is known; nil when nothing
// of it is.
func (c *Conversation) Cost() *MicroUSD { return c.cost }

// Gauge returns how a model counts, by its requests of this conversation.
func (c *Conversation) Gauge(model ModelRef) Gauge { return c.gauges[model] }

// learn notes how a model counts.
func (c *Conversation) learn(model ModelRef, guess, took int64) {
	if c.gauges == nil {
		c.gauges = make(map[ModelRef]Gauge)
	}
	c.gauges[model] = c.gauges[model].Learn(guess, took)
}
