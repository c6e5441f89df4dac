"""Schedules that another process sent."""

from __future__ import annotations

import pickle

import numpy as np

import placeopt as po


def test_arrays_are_aligned_after_a_schedule_was_received() -> None:
    """Receivers hand over buffers of messages as they lie; the engine reads only aligned arrays."""
    schedule = po.Schedule(np.array([1, 0, 1], dtype=np.int64), np.array([4, 2, 9], dtype=np.int64))
    buffers: list[pickle.PickleBuffer] = []
    message = pickle.dumps(schedule, protocol=5, buffer_callback=buffers.append)
    shifted = [memoryview(b"\0" + bytes(each.raw()))[1:] for each in buffers]
    assert shifted
    assert not np.frombuffer(shifted[0], dtype=np.int64).flags.aligned
    received = pickle.loads(message, buffers=shifted)
    assert received.device.flags.aligned
    assert received.start.flags.aligned
    assert received.device.tolist() == [1, 0, 1]
    assert received.start.tolist() == [4, 2, 9]
