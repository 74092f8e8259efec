"""Coverage-guided fuzzing of everything that reads a file from outside."""
