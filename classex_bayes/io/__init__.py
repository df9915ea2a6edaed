"""Files. They are written completely or not at all, and reading them never runs code."""
