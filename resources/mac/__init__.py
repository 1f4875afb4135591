"""What a Mac's own commands say: one module for each subject, pure functions from text to frozen values.

Text that they do not understand gives None or nothing, never an exception: each macOS prints a little differently.
"""
