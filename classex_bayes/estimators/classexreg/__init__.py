"""ClassExReg and what it alone uses."""
