package turns

import "github.com/berth-dev/berth/core/domain"

// request builds the next call of the model from the journal.
func (t *turn) request() (domain.ModelRequest, error) {
	messages, err := t.live.Messages(t.ctx)
	if err != nil {
		return domain.ModelRequest{}, err
	}
	t.showMedia(messages)
	return domain.ModelRequest{
		Session:         t.sid,
		Model:           t.view.Agent.Model,
		System:          t.system,
		Messages:        messages,
		Tools:           t.specs,
		MaxOutputTokens: t.view.Agent.MaxOutputTokens,
		Thoughts:        t.view.Agent.Thoughts,
	}, nil
}
