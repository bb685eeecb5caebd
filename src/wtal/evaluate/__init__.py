"""How good the found instances are, measured as the field measures it, and why a number is low.

>>> from wtal.annotations import Annotations, Video
>>> from wtal.instances import Instances
>>> truth = Annotations(("Run",), {"a": Video("test", 60.0, Instances([[3.0, 8.0]]))})
>>> found = {"a": Instances([[3.0, 9.0], [20.0, 30.0]], scores=[0.9, 0.4])}
>>> score(found, truth, protocol="thumos14").average
{'0.1:0.5': 100.0, '0.3:0.7': 100.0, '0.1:0.7': 100.0}
"""

from wtal.evaluate.ambiguous import read_ambiguous
from wtal.evaluate.classification import classification_map, video_level
from wtal.evaluate.curves import precision_recall, video_precision
from wtal.evaluate.detection import Score, headline, mean_average_precision, score
from wtal.evaluate.diagnosis import Diagnosis, diagnose
from wtal.evaluate.inputs import Case, prepare
from wtal.evaluate.protocols import PROTOCOLS, Protocol
from wtal.evaluate.recall import average_recall
from wtal.evaluate.target_quality import TargetQuality, target_calibration, target_quality

__all__ = [
    "PROTOCOLS",
    "Case",
    "Diagnosis",
    "Protocol",
    "Score",
    "TargetQuality",
    "average_recall",
    "classification_map",
    "diagnose",
    "headline",
    "mean_average_precision",
    "precision_recall",
    "prepare",
    "read_ambiguous",
    "score",
    "target_calibration",
    "target_quality",
    "video_level",
    "video_precision",
]
