import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from wtal.errors import InputError
from wtal.instances import Instances
from wtal.models import MODELS, build
from wtal.models.protocol import Batch

OWN = """
import torch
from wtal.losses import normalised_cross_entropy
from wtal.models.protocol import Batch, Model, Output, Supervised

class Mean(Model):
    def __init__(self, n_classes, d, *, scale=1.0):
        super().__init__()
        self.classify, self.scale = torch.nn.Linear(d, n_classes), scale

    def forward(self, batch):
        logits = self.scale * self.classify(batch.features)
        video = torch.stack([part.mean(dim=0) for part in logits.split(batch.lengths)])
        scores = video.sigmoid()
        return Output(logits.sigmoid(), torch.ones(len(logits)), scores, (Supervised(logits),), inner=video)

    def losses(self, output, batch, epoch):
        return {"video": normalised_cross_entropy(output.inner, batch.tags).sum()}
"""


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_named_model_keeps_the_protocol(name: str) -> None:
    model = build(name, n_classes=3, d=16).train()
    batch = Batch.pack([torch.rand(9, 16), torch.rand(1, 16)], torch.eye(3)[:2])
    boxes = (Instances([[2.0, 6.0]], [0.8], [0], unit="snippets"), Instances.empty("snippets"))
    batch = replace(batch, boxes=boxes)
    model.begin([batch])
    output = model(batch)
    assert output.tcam.shape[0] == output.attention.shape[0] == 10
    assert output.tcam.shape[1] in (3, 4)
    assert output.video_scores.shape[0] == 2
    # targets supervise the snippet logits of all models but the detector, which is taught boxes
    assert sum(one.weight for one in output.supervised) == pytest.approx(0 if name == "detector" else 1)
    losses = model.losses(output, batch, 0)
    torch.stack(list(losses.values())).sum().backward()
    model.end_step(output, batch, 0)
    model.end_epoch(0, [batch])
    model.targets_changed()


def test_a_users_own_model_by_module_and_attribute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_own_model.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    model = build("my_own_model:Mean", n_classes=3, d=4, scale=2.0)
    batch = Batch.pack([torch.rand(5, 4)], torch.eye(3)[:1])
    model.losses(model(batch), batch, 0)["video"].backward()
    model.end_epoch(0, [batch])  # hooks that a model does not need come with the base class
    with pytest.raises(InputError, match="no 'Median'"):
        build("my_own_model:Median", n_classes=3, d=4)
    sys.modules.pop("my_own_model")


def test_unknown_models_say_what_there_is() -> None:
    known = ", ".join(sorted(MODELS))
    with pytest.raises(InputError, match=rf"no model 'rksp' \(did you mean rskp\?\); there are {known}"):
        build("rksp", n_classes=3, d=4)
    with pytest.raises(InputError, match="no module 'nowhere'"):
        build("nowhere.at_all:Model", n_classes=3, d=4)


def test_a_models_own_missing_dependency_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needs_more.py").write_text("import not_installed_anywhere")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
        build("needs_more:Model", n_classes=3, d=4)


@pytest.mark.parametrize("name", ["bm", "facnet", "rskp", "stpn", "wum"])
def test_rounded_products_teach_the_same_and_test_stays_as_it_is(name: str) -> None:
    videos = [torch.rand(n, 64, generator=torch.Generator().manual_seed(n)) for n in (40, 9)]
    batch = Batch.pack(videos, torch.eye(3)[:2], seeds=[1, 2])
    options = {"hidden": 64} if name in ("bm", "stpn", "wum") else {}
    tested, gradients = [], []
    for precision in ("float32", "bfloat16"):
        torch.manual_seed(0)
        model = build(name, 3, 64, precision=precision, **options)
        tested.append(model.eval()(batch).tcam)
        model.train()
        torch.stack(list(model.losses(model(batch), batch, 0).values())).sum().backward()
        gradients.append(torch.cat([one.grad.flatten() for one in model.parameters() if one.grad is not None]))
    assert torch.equal(*tested)
    assert 0 < (gradients[0] - gradients[1]).norm() / gradients[0].norm() < 0.03
