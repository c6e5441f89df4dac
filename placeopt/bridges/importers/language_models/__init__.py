"""Import language models: GGUF files and Hugging Face configurations become layers with their costs."""
