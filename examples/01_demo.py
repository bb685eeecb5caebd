"""The whole method on generated videos: tags in, instances out, scored. Ten seconds or so; needs wtal[train]."""

import wtal
from wtal.cli import main
from wtal.data import Store

# Features of 70 videos with known truth: 60 to train on, 10 to test. Training reads the tags, never the times.
size = ["--train-videos", "60", "--test-videos", "10", "--n-classes", "6", "--dims", "128"]
main(["data", "synthesize", "-o", "demo-store", "--overwrite", *size])
store = Store.open("demo-store")

# Train by a recipe that comes with wtal: RSKP, with pseudo labels made from fused instances on the way.
run = wtal.train("demo", store, "demo-run", threads=1, resume=True)

# Find the actions of the test videos, in seconds, and compare them with the truth.
localizer = wtal.Localizer.load(run.path)
found = localizer.store(store, "test")
score = wtal.score(found, wtal.read_annotations("demo-store/gt.json"), protocol="thumos14")
print("mAP in percent:", {name: round(value, 1) for name, value in score.average.items()})

name, instances = next(iter(found.items()))
best = instances[:5]
print(f"the best five of {name}:")
for (start, end), class_id in zip(best.segments, best.class_ids, strict=True):
    print(f"  {start:6.1f} to {end:6.1f} s  {localizer.classes[class_id]}")
