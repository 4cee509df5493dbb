"""Compiled inner loops. Nothing here is imported before a run needs it, so that listing names stays fast."""
