package anthropic

// mark sets the places up to which the provider keeps what it has read, four
// at most: behind the tools, behind the system prompt, behind the newest
// message and behind the message that was the newest one of the request
// before. The last is where this request finds what that one left, however
// many blocks have come since; the first two outlive a conversation.
func (b *body) mark() {
	here := &cache{Type: "ephemeral"}
	if n := len(b.Tools); n > 0 {
		b.Tools[n-1].Cache = here
	}
	if n := len(b.System); n > 0 {
		b.System[n-1].Cache = here
	}
	marks := 0
	for i := len(b.Messages) - 1; i >= 0 && marks < 2; i-- {
		msg := b.Messages[i]
		if msg.Role == "user" {
			msg.Content[len(msg.Content)-1].Cache = here
			marks++
		}
	}
}
