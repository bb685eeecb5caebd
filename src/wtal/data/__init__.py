"""Data sets: published layouts in, one memory-mapped store out, a doctor and a generator beside them."""

from wtal.data.store import Store
from wtal.data.video_record import VideoRecord
from wtal.data.writer import extend_store, new_store

__all__ = ["Store", "VideoRecord", "extend_store", "new_store"]
