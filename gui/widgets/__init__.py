"""Small painted controls that several panes share."""
