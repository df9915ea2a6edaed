"""Notes of a prediction. Some are computed only when they are read."""

from collections.abc import Callable, Sequence
from typing import Any

# A sentence, or a slow function that returns sentences.
Note = str | Callable[[], Sequence[str]]


class Notes:
    """Attribute `notes` of a result: sentences, and functions that return more of them.

    The functions are called when the attribute is first read. Readers see a tuple of sentences, and
    unread notes cost nothing.
    """

    def __get__(self, result: Any, owner: type) -> tuple[str, ...]:
        """Call the functions among the notes, and keep what they return."""
        if result is None:
            return ()  # the default of a dataclass
        notes: tuple[Note, ...] = result.__dict__["notes"]
        parts = [[note] if isinstance(note, str) else note() for note in notes]
        result.__dict__["notes"] = sentences = tuple(note for part in parts for note in part)
        return sentences

    def __set__(self, result: Any, value: tuple[Note, ...]) -> None:
        """Keep notes as they are given."""
        result.__dict__["notes"] = value


NOTES = Notes()
