"""Reading run folders, and the report page."""
