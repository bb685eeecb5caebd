"""Speed as ratios: each part against a straightforward version of the same work, in one run on one machine."""
