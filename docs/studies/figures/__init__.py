"""Pictures of pages, and numbers that pages print."""
