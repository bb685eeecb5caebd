"""Feature sets with known truth, for any annotations: the hard parts of weak supervision, made to order.

A snippet's feature is the sum, in a latent space that is then rotated into the wanted number of dimensions, of

- the **action**: its class's direction, but only *salient parts* of an action show it fully, the rest a weaker
  plateau, and at either end it fades in or out over a *shoulder*: what leads up to an action and what follows it look
  like it. The annotated end is the shoulder's middle. Each instance has its own strength and its own variation of the
  class, and each of its ends a shoulder of its own extent;
- the **context**: a scene direction that goes with the class and spills over the ends of the actions, so that tags
  alone teach it along with the action (the classic confusion);
- the **video**'s own offset, and temporally smooth noise.

Why fusing the candidates of many thresholds beats NMS here, as it does on real videos: an end is not a step, so every
threshold misses it, a high one to the inside (down to the salient part), a low one to the outside (up to the
neighbour), and by how much differs from end to end. NMS keeps one candidate, that of most contrast, with its error;
the weighted mean takes errors of both signs and they cancel. That is not all of it: with ends that are steps fusion
still gains. The default strengths are set by where thresholds end, not by the scores: those of a trained RSKP lie on
both sides of the true ends in about the shares that they do on THUMOS14 (`python -m benchmarks boundaries` measures
both).

Why pseudo labels pay where there is much noise (`wtal demo` has 1.8): tags are explained by the snippets that show an
action clearly, and the model stops there. The fused instances reach over the unclear ones between them, and labels made
from them say that those belong to the action too.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from wtal.annotations import Annotations, Video
from wtal.data.source import Source
from wtal.data.streams import Streams, halves
from wtal.data.tags import tags_from_annotations
from wtal.errors import InputError
from wtal.instances import Instances
from wtal.timebase import TimeBase

LATENT = 128
SHOULDER_SPREAD = 0.8  # of the logarithm: long tails, as lengths and gaps have them


@dataclass(frozen=True)
class Difficulty:
    """How hard it is: lengths of the vectors that are added, where a salient part's own is 1."""

    plateau: float = 0.6
    """Strength of an action outside its salient parts."""
    shoulder: float = 0.5
    """Median extent of the fading at either end, as a share of the action's length."""
    context: float = 0.5
    """Strength of the scene that goes with the class."""
    context_correlation: float = 0.8
    """Share of tagged videos that show their own class's scene; the others show any class's."""
    variation: float = 0.4
    """Size of an instance's own deviation from its class."""
    scene: float = 0.3
    """Size of a video's own offset."""
    noise: float = 1.2
    """Size of the temporally smooth noise."""
    smoothness: float = 3.0
    """Correlation length of that noise, in snippets."""
    feature_noise: float = 0.05
    """White noise in each feature dimension; 0 saves its time."""


@dataclass(frozen=True)
class World:
    """The directions that all videos share: one per class, one per class's context, and the rotation."""

    actions: Float[np.ndarray, "c k"]
    contexts: Float[np.ndarray, "c k"]
    rotation: Float[np.ndarray, "k d"]

    @classmethod
    def create(cls, rng: np.random.Generator, n_classes: int, n_dims: int) -> "World":
        """Random directions; latent strengths come out the same whatever the number of dimensions."""
        if n_classes < 1 or n_dims < 2:
            raise InputError(f"wanted a class and 2 dimensions at least, got {n_classes} and {n_dims}")
        k = min(LATENT, n_dims)
        directions = rng.standard_normal((2 * n_classes, k))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        rotation, _ = np.linalg.qr(rng.standard_normal((n_dims, k)))
        scaled = rotation.T * np.sqrt(n_dims / k)
        actions, contexts = directions[:n_classes], directions[n_classes:]
        return cls(*(array.astype(np.float32) for array in (actions, contexts, scaled)))

    def evidence(self, features: Float[np.ndarray, "t d"]) -> Float[np.ndarray, "t c"]:
        """How strongly each snippet shows each class, for one who knows the directions: the ceiling to train for."""
        k, d = self.rotation.shape
        return (features.astype(np.float32) @ self.rotation.T) * np.float32(k / d) @ self.actions.T


def synthetic_features(
    world: World,
    instances: Instances,
    t: int,
    rng: np.random.Generator,
    *,
    timebase: TimeBase | None = None,
    difficulty: Difficulty | None = None,
) -> Float[np.ndarray, "t d"]:
    """Features of `t` snippets in which these instances (in seconds) take place.

    >>> world = World.create(np.random.default_rng(0), n_classes=3, n_dims=64)
    >>> one = Instances([[16.0, 32.0]], class_ids=[2])
    >>> x = synthetic_features(world, one, 100, np.random.default_rng(1))
    >>> x.shape, int(world.evidence(x)[25:50].mean(axis=0).argmax())
    ((100, 64), 2)
    """
    how = difficulty or Difficulty()
    clock = timebase or TimeBase()
    c, k = world.actions.shape
    z = _smooth_noise(rng, t, k, how)
    z += np.float32(how.scene / np.sqrt(k)) * rng.standard_normal(k, dtype=np.float32)
    segments = clock.to_positions(instances.segments)
    curves, vectors = [], []  # what is added: a strength over time and a direction each
    for class_id in np.unique(instances.class_ids):
        own = rng.random() < how.context_correlation
        curves.append(how.context * _context(segments[instances.class_ids == class_id], t, rng))
        vectors.append(world.contexts[class_id if own else rng.integers(c)])
    if not len(instances):  # a video without any action has a scene too
        curves.append(how.context * _context(np.array([[0.3 * t, 0.6 * t]]), t, rng))
        vectors.append(world.contexts[rng.integers(c)])
    for (start, end), class_id in zip(segments, instances.class_ids, strict=True):
        curves.append(np.exp(0.25 * rng.standard_normal()) * _action(start, end, t, rng, how))
        variation = np.float32(how.variation / np.sqrt(k)) * rng.standard_normal(k, dtype=np.float32)
        vectors.append(world.actions[class_id] + variation)
    z += np.stack(curves, axis=1).astype(np.float32) @ np.stack(vectors)
    x = z @ world.rotation
    if how.feature_noise:
        x += np.float32(how.feature_noise) * rng.standard_normal(x.shape, dtype=np.float32)
    return x


def _coverage(start: float, end: float, t: int) -> Float[np.ndarray, " t"]:
    """How much of each snippet lies in [start, end): boundaries inside a snippet show."""
    left = np.arange(t)
    return np.clip(np.minimum(end, left + 1) - np.maximum(start, left), 0.0, 1.0)


def _action(start: float, end: float, t: int, rng: np.random.Generator, how: Difficulty) -> Float[np.ndarray, " t"]:
    """Strength over time of one instance: a plateau with one or two salient parts, a quarter of it long each, that
    fades in and out around its two ends."""
    at = np.arange(t) + 0.5
    salient = start + (end - start) * rng.uniform(0.15, 0.85, size=rng.integers(1, 3))
    bumps = np.exp(-0.5 * ((at[:, None] - salient) / (0.12 * (end - start))) ** 2).max(axis=1)
    level = how.plateau * rng.uniform(0.7, 1.3)
    # a step gives a fade over one snippet, the one it falls into
    onset, offset = np.maximum(how.shoulder * (end - start) * np.exp(SHOULDER_SPREAD * rng.standard_normal(2)), 1.0)
    fade = np.clip((at - start) / onset + 0.5, 0, 1) * np.clip((end - at) / offset + 0.5, 0, 1)
    return fade * (level + (1 - level) * bumps)


def _context(segments: Float[np.ndarray, "n 2"], t: int, rng: np.random.Generator) -> Float[np.ndarray, " t"]:
    """Presence over time of the scene around these actions: it starts before them and stays after them."""
    present = np.zeros(t)
    for start, end in segments:
        before, after = rng.uniform(0.2, 1.2, size=2) * max(end - start, 4.0)
        present = np.maximum(present, _coverage(start - before, end + after, t) * rng.uniform(0.6, 1.0))
    return present


def _smooth_noise(rng: np.random.Generator, t: int, k: int, how: Difficulty) -> Float[np.ndarray, "t k"]:
    """Noise of which most is interpolated between knots, so that neighbours are alike."""
    at = np.arange(t) / max(how.smoothness, 1.0)
    left = at.astype(np.int64)
    knots = rng.standard_normal((left[-1] + 2, k), dtype=np.float32)
    right_share = (at - left).astype(np.float32)[:, None]
    slow = knots[left] * (1 - right_share) + knots[left + 1] * right_share
    return np.float32(how.noise / np.sqrt(k)) * (0.8 * slow + 0.6 * rng.standard_normal((t, k), dtype=np.float32))


def synthetic_source(
    annotations: Annotations,
    rng: np.random.Generator,
    *,
    n_dims: int = 256,
    timebase: TimeBase | None = None,
    difficulty: Difficulty | None = None,
) -> Source:
    """A source whose features are made while they are read: convert it like any other, at any size.

    The same `rng` state makes the same features, and a video's do not depend on the order of reading. Where a
    duration is missing the video ends shortly after its last action.
    """
    clock = timebase or TimeBase()
    world = World.create(rng, len(annotations.classes), n_dims)
    seeds = rng.integers(2**63, size=len(annotations.videos))
    seed = dict(zip(annotations.videos, seeds.tolist(), strict=True))
    tagged = tags_from_annotations(annotations, clock)
    records = tuple(replace(one, duration_s=_lasts_s(annotations.videos[name])) for name, one in tagged.items())

    def load(name: str) -> Streams:
        video = annotations.videos[name]
        t = max(1, int(_lasts_s(video) / clock.snippet_s))
        own = np.random.default_rng(seed[name])
        x = synthetic_features(world, video.instances, t, own, timebase=clock, difficulty=difficulty)
        return halves(x)

    return Source("synthetic", annotations.classes, records, load, annotations)


def _lasts_s(video: Video) -> float:
    last = float(video.instances.ends.max()) if len(video.instances) else 0.0
    return video.duration_s or (last + 5.0 if last else 60.0)
