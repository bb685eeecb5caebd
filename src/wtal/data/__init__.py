"""Data sets: published layouts in, one memory-mapped store out, a doctor and a generator beside them."""

from wtal.data.store import Store
from wtal.data.video_record import VideoRecord
from wtal.data.writer import new_store

__all__ = ["Store", "VideoRecord", "new_store"]
