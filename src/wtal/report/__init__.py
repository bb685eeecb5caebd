"""Plots of what the method saw and did, tables in every form, and a page about one run or many."""
