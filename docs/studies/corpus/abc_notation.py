"""Notes of tunes in abc notation."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

_STEPS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
_FIFTHS = "FCGDAEB"
_ACCIDENTALS = {"^^": 2, "^": 1, "=": 0, "_": -1, "__": -2}
# Fifths from the major key of the same tonic to the mode.
_MODES = {"m": -3, "min": -3, "aeo": -3, "dor": -2, "mix": -1, "lyd": 1, "phr": -4, "loc": -5}
_KEY = re.compile(r"\s*([A-G])([#b]?)\s*([A-Za-z]*)")
_ASIDE = re.compile(r"%.*|\"[^\"]*\"|![^!]*!|\{[^}]*\}|\[[A-Za-z]:[^]]*\]|\[(?=\d)")
_TOKEN = re.compile(
    r"(?P<accidental>\^\^?|__?|=)?(?P<letter>[A-Ga-gzx])(?P<octave>[,']*)"
    r"(?P<times>\d*)(?P<slashes>/*)(?P<over>\d*)"
    r"|(?P<bar>\|)|\((?P<tuplet>\d)|(?P<dots>>+|<+)|(?P<tie>-)|\[(?P<chord>[^]|:]*)\]"
)


@dataclass(frozen=True)
class Tune:
    """A melody: title, MIDI numbers of the notes, and their lengths in units of the file."""

    title: str
    pitches: tuple[int, ...]
    durations: tuple[Fraction, ...]


def tunes(text: str) -> Iterator[Tune]:
    r"""Yield the tunes of an abc file. Rests lengthen the note before them; repeats are ignored.

    Examples
    --------
    >>> (tune,) = tunes("X:1\nT:Scale\nK:G\nG2 F/ | e>d z")
    >>> tune.pitches
    (67, 66, 76, 74)
    >>> [str(duration) for duration in tune.durations]
    ['2', '1/2', '3/2', '3/2']
    """
    for block in re.split(r"^X:", text, flags=re.MULTILINE)[1:]:
        lines = block.splitlines()[1:]
        fields = dict(line.split(":", 1) for line in reversed(lines) if re.match(r"[TK]:", line))
        music = [line for line in lines if not re.match(r"[A-Za-z]:|%", line)]
        pitches, durations = _notes("\n".join(music), _signature(fields.get("K", "C")))
        yield Tune(fields.get("T", "").strip(), tuple(pitches), tuple(durations))


def _signature(key: str) -> dict[str, int]:
    """Return the sharps and flats of a key, by letter.

    >>> _signature("Ddor"), _signature("Bb")
    ({}, {'B': -1, 'E': -1})
    """
    match = _KEY.match(key)
    if not match:
        return {}
    tonic, sign, mode = match.groups()
    fifths = _FIFTHS.index(tonic) - 1 + {"#": 7, "b": -7, "": 0}[sign]
    fifths += _MODES.get(mode.lower()[:3], 0)
    letters = _FIFTHS[:fifths] if fifths >= 0 else _FIFTHS[::-1][:-fifths]
    return dict.fromkeys(letters, 1 if fifths > 0 else -1)


def _notes(music: str, signature: dict[str, int]) -> tuple[list[int], list[Fraction]]:
    """Return the MIDI numbers and lengths of the notes in the body of a tune."""
    pitches: list[int] = []
    durations: list[Fraction] = []
    in_bar: dict[str, int] = {}
    tied, factor, left = False, Fraction(1), 0
    after = Fraction(1)  # factor of the next note's length after dots
    music = _ASIDE.sub("", music)
    for token in _TOKEN.finditer(music):
        if token["bar"]:
            in_bar = {}
        elif token["tie"]:
            tied = True
        elif token["tuplet"]:
            left = int(token["tuplet"])
            factor = Fraction({2: 3, 3: 2, 4: 3, 6: 2}.get(left, left - 1), max(left, 1))
        elif token["dots"] and durations:
            short = Fraction(1, 2 ** len(token["dots"]))
            long = 2 - short
            first, after = (long, short) if token["dots"][0] == ">" else (short, long)
            durations[-1] *= first
        elif token["letter"] or token["chord"]:
            inner = _TOKEN.match(token["chord"]) if token["chord"] else token
            if not inner or not inner["letter"]:
                continue
            length = after * Fraction(int(inner["times"] or 1), _divisor(inner))
            after = Fraction(1)
            if left:
                length, left = length * factor, left - 1
            letter = inner["letter"]
            if letter in "zx":
                if durations:
                    durations[-1] += length
                continue
            pitch = _pitch(inner, in_bar, signature)
            if tied and pitches and pitch == pitches[-1]:
                durations[-1] += length
            else:
                pitches.append(pitch)
                durations.append(length)
            tied = False
    return pitches, durations


def _divisor(note: re.Match[str]) -> int:
    """Return the divisor of a length: A/ and A/2 are halves, A// is a quarter.

    >>> [_divisor(_TOKEN.match(text)) for text in ("A", "A/", "A/2", "A//", "A3/4")]
    [1, 2, 2, 4, 4]
    """
    return int(note["over"]) if note["over"] and note["slashes"] else 2 ** len(note["slashes"])


def _pitch(note: re.Match[str], in_bar: dict[str, int], signature: dict[str, int]) -> int:
    """Return the MIDI number of a note. An accidental holds to the end of the bar."""
    letter = note["letter"]
    place = letter + note["octave"]
    if note["accidental"]:
        in_bar[place] = _ACCIDENTALS[note["accidental"]]
    shift = in_bar.get(place, signature.get(letter.upper(), 0))
    octave = letter.islower() + note["octave"].count("'") - note["octave"].count(",")
    return 60 + 12 * octave + _STEPS[letter.upper()] + shift
