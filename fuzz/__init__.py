"""Damaged files at every reader for as long as one likes: python -m fuzz --minutes 60."""
