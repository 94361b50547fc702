package domain

// Shrinkage is how a conversation can be made smaller: a Compacted to fill in,
// and what its summary has to tell of.
type Shrinkage struct {
	Record  Compacted      // Trimmed, Through and Largest are set
	Earlier string         // the summary so far, which the new one replaces
	Old     []ModelMessage // what a summary is needed of; none when trimming does
	Size    int64          // estimated tokens of the messages now
	Left    int64          // and of those that stay, without the summary
	Recap   int64          // and of what stands around the summary
}

// Shrink finds the least that brings the messages to goal estimated tokens, or
// else to limit: outputs of tools that are not of the newest step are trimmed;
// what stands before the newest prompt is summarised; what stands before the
// newest step is; the results of the newest step are cut. The newest prompt
// and the replies that stay are never touched. It is false when nothing can be
// won. With summarise set trimming alone will not do.
func (c *Conversation) Shrink(goal, limit int64, summarise bool) (Shrinkage, bool) {
	prompt := c.newestPrompt()
	step := c.newestStep(prompt)
	s := Shrinkage{Size: EstimateMessages(c.Messages()), Earlier: c.summary}
	s.Record.Trimmed = c.seq
	if step < len(c.messages) {
		s.Record.Trimmed = c.messages[step].at - 1
	}
	sizes := make([]int64, len(c.messages), len(c.messages)+len(c.waiting)) // once trimmed
	for i, m := range c.messages {
		if i != prompt && m.at <= s.Record.Trimmed {
			m.ModelMessage = trimmed(m.ModelMessage)
		}
		sizes[i] = estimate(m.ModelMessage)
	}
	for _, w := range c.waiting {
		sizes = append(sizes, estimate(w.unanswered()))
	}
	s.Left = sum(sizes)
	if s.Left <= goal && !summarise {
		return s, s.Left < s.Size
	}
	s.Recap = c.recapSize()
	s.throughPrompt(c, prompt, sizes)
	if s.Left+s.Recap+summaryTokens > goal && step > prompt+1 {
		s.throughStep(c, prompt, step, sizes)
	}
	if extra := s.Recap + summaryTokens; s.Left+extra > limit {
		s.cutNewest(c, step, limit-extra)
	}
	if s.Record.Through == 0 {
		s.Recap = 0
	}
	return s, s.Left+s.Recap < s.Size
}

func sum(list []int64) (n int64) {
	for _, v := range list {
		n += v
	}
	return n
}

// A summary is expected to take summaryTokens and may take MaxSummary bytes.
const (
	summaryTokens = 1000
	MaxSummary    = 16 << 10
)

// recapSize is about what the recap takes.
func (c *Conversation) recapSize() int64 {
	size := 400 + len(c.asked)*maxAskedBytes
	for _, e := range c.plan {
		size += len(e.Content) + 20
	}
	return int64(size/bytesPerToken) + messageTokens
}

// newestStep returns the index of the newest reply that asked for calls behind
// the newest prompt, else of what follows that prompt.
func (c *Conversation) newestStep(prompt int) int {
	for i := len(c.messages) - 1; i > prompt; i-- {
		if r, ok := c.messages[i].ModelMessage.(ModelReply); ok && len(r.Calls) > 0 {
			return i
		}
	}
	return prompt + 1
}

// throughPrompt leaves out everything before the newest prompt.
func (s *Shrinkage) throughPrompt(c *Conversation, prompt int, sizes []int64) {
	if prompt <= 0 || prompt == 1 && c.messages[0].summary {
		return
	}
	s.Record.Through = c.messages[prompt].at - 1
	s.takeAway(c.messages[:prompt])
	s.Left = sum(sizes[prompt:])
}

// throughStep leaves out everything before the newest step but the newest
// prompt.
func (s *Shrinkage) throughStep(c *Conversation, prompt, step int, sizes []int64) {
	if step >= len(c.messages) {
		return
	}
	s.Record.Through = c.messages[step].at - 1
	s.Old, s.Recap = nil, c.recapSize()
	if prompt > 0 {
		s.takeAway(c.messages[:prompt])
	}
	s.takeAway(c.messages[max(prompt, 0):step])
	s.Left = sum(sizes[step:])
	if prompt >= 0 {
		s.Left += sizes[prompt]
	}
}

// takeAway adds messages to those a summary is needed of.
func (s *Shrinkage) takeAway(list []message) {
	for _, m := range list {
		if m.summary {
			continue
		}
		s.Old = append(s.Old, m.ModelMessage)
		if _, ok := m.ModelMessage.(UserInput); ok {
			s.Recap += min(estimate(m.ModelMessage), maxAskedBytes/bytesPerToken) + 2
		}
	}
}

// cutNewest cuts the outputs of the newest step so that everything that stays
// takes limit tokens.
func (s *Shrinkage) cutNewest(c *Conversation, step int, limit int64) {
	var outputs, count int64
	for _, m := range c.messages[min(step, len(c.messages)):] {
		if out, ok := m.ModelMessage.(ToolOutput); ok {
			outputs += estimate(out)
			count++
		}
	}
	if count == 0 {
		return
	}
	each := max((limit-(s.Left-outputs))/count*bytesPerToken, leastResult)
	s.Record.Largest = each
	for _, m := range c.messages[step:] {
		if out, ok := m.ModelMessage.(ToolOutput); ok && int64(len(out.Text)) > each {
			was := estimate(out)
			out.Text, out.Media = Shorten(out.Text, each, againHint), nil
			s.Left += estimate(out) - was
		}
	}
}
