"""Plots of what the method saw and did."""
