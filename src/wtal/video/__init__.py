"""From a video file to features: decode, cut into snippets, run a network over each.

`decode` re-times frames by presentation time, `snippets` lays windows on that clock, an extractor (`frames`, `i3d`, or
a user's own) turns each window into a vector. Nothing here knows of tags or stores; `wtal.extract` does.
"""
