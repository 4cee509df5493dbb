"""Compressors of messages, error feedback, and the compiled kernel that quantizes."""
