"""Fused instances and snippet pseudo labels from any model's activation map, without torch."""

import numpy as np

import wtal

# What your model gives: activations (snippets, classes) and class scores of the whole video.
rng = np.random.default_rng(0)
tcam = np.clip(np.convolve(rng.random(400), np.ones(25) / 25, "same")[:, None] * [1.0, 0.2] - 0.45, 0, 1)
video_scores = np.array([0.9, 0.05])

# The six lines.
proposals = wtal.RECOMMENDED(tcam, video_scores, n_classes=2)  # a third column would be background
labels = wtal.make_targets(proposals.instances, n_snippets=len(tcam), n_classes=2)
seconds = wtal.TimeBase(fps=25, stride_frames=16).instances_to_seconds(proposals.instances)
wtal.write_predictions("my_predictions.json", {"my_video": seconds}, classes=["Run", "Jump"])
print(f"{len(proposals.candidates)} candidates → {len(seconds)} instances in my_predictions.json")
print(f"labels {labels.values.shape}, {labels.status}, highest {labels.values.max():.3f}")
