"""CleaneX and what it alone uses."""
