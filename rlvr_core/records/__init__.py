"""What a run leaves on disk: names, text rules and shapes, shared by who writes and who reads."""
