"""The settings: a window whose controls apply at once, and what keeps them."""
