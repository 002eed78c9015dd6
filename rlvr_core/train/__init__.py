"""The loop: collect, learn, log, checkpoint."""
