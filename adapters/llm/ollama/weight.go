package ollama

import "github.com/berth-dev/berth/core/domain"

// fits refuses a request that is certainly beyond the window, and, when the
// server would cut it without a word, one that may be. An estimated token is
// four bytes: prose takes four to five and source code three to four, and
// twelve on average is more than any conversation comes to.
func (m *Model) fits(req domain.ModelRequest, f *facts, dropped option) error {
	guess := req.Estimate()
	if guess/3 > f.window {
		return m.tooLong(f, "the conversation is longer than the window of")
	}
	if f.elsewhere || (f.refuses && dropped&dropCut == 0) {
		return nil
	}
	if guess*4/3 > f.window {
		return m.tooLong(f, "the conversation may not fit, and this version of Ollama would cut its start without a word (0.12.6 and newer do not): the window is of")
	}
	return nil
}

// tooLong is the error of a conversation that the window does not hold. Why is
// followed by the size of the window.
func (m *Model) tooLong(f *facts, why string) *domain.Error {
	p, name := m.provider.Name, m.info.Ref.Model
	return domain.Errorf(domain.ContextTooLong,
		"model %q of provider %q: %s %d tokens; make it larger with providers.%s.models.%q.context_window if the machine's memory allows, or shorten the conversation",
		name, p, why, f.window, p, name).With("provider", p).With("window", f.window)
}
