"""KDE and what it alone uses."""
