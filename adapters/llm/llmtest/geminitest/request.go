package geminitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/berth-dev/berth/adapters/llm/llmtest"
)

// The shapes of a request. A field that they lack is refused, as the real API
// refuses it.
type request struct {
	System   *content  `json:"systemInstruction"`
	Contents []content `json:"contents"`
	Tools    []struct {
		Functions []struct {
			Name        string         `json:"name"`
			Description string         `json:"description"`
			Schema      map[string]any `json:"parametersJsonSchema"`
			Parameters  map[string]any `json:"parameters"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	Config struct {
		MaxOutput *int `json:"maxOutputTokens"`
		Thinking  *struct {
			Include bool   `json:"includeThoughts"`
			Budget  *int   `json:"thinkingBudget"`
			Level   string `json:"thinkingLevel"`
		} `json:"thinkingConfig"`
	} `json:"generationConfig"`
}

type content struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

type part struct {
	Text     *string `json:"text,omitempty"`
	Thought  bool    `json:"thought,omitempty"`
	Inline   *blob   `json:"inlineData,omitempty"`
	Call     *call   `json:"functionCall,omitempty"`
	Response *struct {
		ID     string            `json:"id"`
		Name   string            `json:"name"`
		Result map[string]string `json:"response"`
		Parts  []struct {
			Inline *blob `json:"inlineData"`
		} `json:"parts"`
	} `json:"functionResponse,omitempty"`
	Sign string `json:"thoughtSignature,omitempty"`
}

type blob struct {
	MIME string `json:"mimeType"`
	Data []byte `json:"data"`
}

type call struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

func decode(body []byte) (request, error) {
	var r request
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	return r, dec.Decode(&r)
}

// check returns what the API would refuse in the form of a request.
func (s Shape) check(req *http.Request, body []byte) string {
	switch {
	case req.Method != http.MethodPost:
		return "the method"
	case req.URL.Path != path+"/models/"+s.model()+":streamGenerateContent":
		return "the path"
	case req.URL.RawQuery != "alt=sse":
		return "the query"
	case req.Header.Get("X-Goog-Api-Key") != llmtest.Canary || req.Header.Get("Authorization") != "":
		return "the key"
	case req.Header.Get("Content-Type") != "application/json":
		return "the content type"
	}
	r, err := decode(body)
	if err != nil {
		return err.Error()
	}
	if r.System != nil && (len(r.System.Parts) != 1 || r.System.Parts[0].Text == nil) {
		return "the system instruction"
	}
	if wrong := s.checkConfig(r); wrong != "" {
		return wrong
	}
	return checkContents(r.Contents)
}

func (s Shape) checkConfig(r request) string {
	if n := r.Config.MaxOutput; n != nil && *n <= 0 {
		return "no room for output"
	}
	if t := r.Config.Thinking; t != nil {
		switch {
		case t.Budget != nil && t.Level != "":
			return "both a budget and a level"
		case t.Budget != nil && s.strict(), t.Level != "" && !s.strict():
			return "thinking is not told the way of the model"
		case t.Level != "" && !slices.Contains([]string{"MINIMAL", "LOW", "MEDIUM", "HIGH"}, t.Level):
			return "the level " + t.Level
		}
	}
	seen := make(map[string]bool)
	for _, t := range r.Tools {
		for _, f := range t.Functions {
			if !legal(f.Name) || seen[f.Name] || f.Schema != nil && f.Parameters != nil {
				return fmt.Sprintf("the function %q", f.Name)
			}
			seen[f.Name] = true
		}
	}
	return ""
}

func legal(name string) bool {
	for i, c := range name {
		switch {
		case c == '_', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case i > 0 && (c >= '0' && c <= '9' || c == '.' || c == ':' || c == '-'):
		default:
			return false
		}
	}
	return name != "" && len(name) <= 64
}

func checkContents(contents []content) string {
	if len(contents) == 0 {
		return "no contents"
	}
	for i, c := range contents {
		want := "user"
		if i%2 == 1 {
			want = "model"
		}
		if c.Role != want || len(c.Parts) == 0 {
			return fmt.Sprintf("content %d has the role %q and %d parts", i, c.Role, len(c.Parts))
		}
		for j, p := range c.Parts {
			if wrong := p.check(c.Role); wrong != "" {
				return fmt.Sprintf("content %d, part %d: %s", i, j, wrong)
			}
		}
	}
	if contents[len(contents)-1].Role != "user" {
		return "the last content is not the user's"
	}
	return ""
}

func (p part) check(role string) string {
	kinds := 0
	for _, has := range []bool{p.Text != nil, p.Inline != nil, p.Call != nil, p.Response != nil} {
		if has {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return fmt.Sprintf("it holds %d things", kinds)
	case p.Text != nil && *p.Text == "" && p.Sign == "":
		return "an empty text"
	case role == "user" && (p.Call != nil || p.Thought || p.Sign != ""):
		return "the user does not call or think"
	case role == "model" && (p.Response != nil || p.Inline != nil):
		return "the model does not respond"
	case p.Inline != nil && (p.Inline.MIME == "" || len(p.Inline.Data) == 0):
		return "an empty medium"
	case p.Call != nil && !legal(p.Call.Name):
		return "the name of a call"
	case p.Response != nil && (len(p.Response.Result) != 1 || p.Response.Result["output"]+p.Response.Result["error"] == ""):
		return "a response without output or error"
	}
	return ""
}
