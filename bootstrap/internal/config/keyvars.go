package config

// keyVariables are variables that hold keys of model providers besides the
// one that each type looks at: other spellings, and the parts of credentials
// that consist of several. The programs of an agent never get them.
func keyVariables() []string {
	return []string{
		"ANTHROPIC_AUTH_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
		"AZURE_API_KEY", "AZURE_OPENAI_AD_TOKEN", "AZURE_OPENAI_API_KEY", "CEREBRAS_API_KEY", "COHERE_API_KEY", "DEEPSEEK_API_KEY",
		"FIREWORKS_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GROQ_API_KEY", "HF_TOKEN",
		"MISTRAL_API_KEY", "MOONSHOT_API_KEY", "OLLAMA_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "PERPLEXITY_API_KEY",
		"TOGETHER_API_KEY", "XAI_API_KEY", "ZAI_API_KEY",
	}
}
