"""Files of pseudo labels: they hold what was written, and take little room for many classes."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from wtal.errors import InputError
from wtal.formats.targets import read_targets, write_targets
from wtal.instances import Instances


def test_labels_come_back_video_by_video(tmp_path: Path) -> None:
    dense = np.zeros((7, 3), np.float32)
    dense[1, 2], dense[5, 0] = 0.25, 0.5
    instances = [
        Instances([[1.0, 2.0]], [0.25], [2], unit="snippets"),
        Instances.empty("snippets"),
        Instances([[0.0, 2.0]], [0.5], [0], unit="snippets"),
    ]
    path = tmp_path / "labels.npz"
    write_targets(path, ["a", "one", "b"], [4, 1, 2], ["Run", "Jump", "Swim"], csr_array(dense), instances)
    made = read_targets(path)
    assert made.classes == ("Run", "Jump", "Swim")
    assert list(made.targets) == ["a", "one", "b"]
    for name, part in zip(made.targets, np.split(dense, [4, 5]), strict=True):
        np.testing.assert_array_equal(made.targets[name], part)
    assert [len(made.instances[name]) for name in made.targets] == [1, 0, 1]
    assert made.instances["b"].class_ids.tolist() == [0]


def test_size_follows_the_labels_not_the_classes(tmp_path: Path) -> None:
    sizes = []
    for n_classes in (20, 2000):
        labels = csr_array((np.full(50, 0.5, np.float32), (np.arange(50), np.arange(50) % 7)), shape=(1000, n_classes))
        path = tmp_path / f"{n_classes}.npz"
        write_targets(path, ["a"], [1000], [str(n) for n in range(n_classes)], labels, [Instances.empty("snippets")])
        with np.load(path) as file:
            sizes.append(sum(file[name].nbytes for name in file.files if name != "classes"))
    assert sizes[0] == sizes[1]


def test_a_file_without_labels_is_named(tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    np.savez(path, names=np.array(["a"]), lengths=np.array([3]), classes=np.array(["Run"]))
    with pytest.raises(InputError, match=r"other\.npz is not a readable file of pseudo labels"):
        read_targets(path)
