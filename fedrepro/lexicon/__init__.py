"""The lexicon: the vague words of papers' sentences, and every way in which they are read."""
