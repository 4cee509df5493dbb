"""How long runs take and how much memory they need."""
