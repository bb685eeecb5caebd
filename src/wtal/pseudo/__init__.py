"""The paper: functions over numpy arrays that turn activation maps into instances and instances into labels.

In the order in which they are used: `candidates` (thresholds cut the TCAM into runs), `fusion` (Eq. 1–4),
`linpro` (Eq. 5–6), `delta` (Eq. 7–9). No torch, no files, no configuration.
"""
