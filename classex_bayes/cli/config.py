"""Settings from a TOML file, under the names that they have on the command line."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from classex_bayes.exceptions import DataError

_NOT_SETTINGS = {"config", "help"}


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take settings of a verb that are not on the command line from a file.

    Keys at the top hold for every verb that knows them; those in the table of a verb
    (``[extrapolate]``) for this one, and go before. Lists are written as lists.
    """
    if path is None or context.resilient_parsing:
        return path
    # Underscores are what the same settings have in Python.
    content = {name.replace("_", "-"): value for name, value in _read(path).items()}
    verbs = {
        name: _settings(verb)
        for name, verb in context.find_root().command.commands.items()  # type: ignore[attr-defined]
    }
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    for name, table in tables.items():
        _refuse_unknown(path, [name], verbs)
        tables[name] = {key.replace("_", "-"): value for key, value in table.items()}
        _refuse_unknown(path, tables[name], verbs[name])
    options = _settings(context.command)
    top = {name: value for name, value in content.items() if name not in tables}
    _refuse_unknown(path, top, options | {n: 0 for of_verb in verbs.values() for n in of_verb})
    chosen = top | tables.get(verb_name(context), {})
    context.default_map = {
        options[name].name: _as_typed(options[name], value)
        for name, value in chosen.items()
        if name in options
    }
    return path


def verb_name(context: Any) -> str:
    """Name of a verb on the command line, without that of the program."""
    return context.command_path.removeprefix(context.find_root().command_path).strip()


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise DataError(f"--config: cannot read {path} ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"--config: {path} is no TOML ({error})") from None


def _settings(verb: Any) -> dict[str, Any]:
    """Settings of a verb by their long names on the command line."""
    named = {}
    for setting in verb.params:
        long = [option[2:] for option in setting.opts if option.startswith("--")]
        named[long[0] if long else setting.name] = setting
    return {name: setting for name, setting in named.items() if name not in _NOT_SETTINGS}


def _as_typed(setting: Any, value: Any) -> Any:
    """A value as it would be typed: numbers of classes with commas; files are a list."""
    if setting.nargs == -1:
        return value if isinstance(value, list) else [value]
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _refuse_unknown(path: Path, names: Iterable[str], expected: Iterable[str]) -> None:
    unknown = [name for name in names if name not in expected]
    if unknown:
        raise DataError(
            f"--config: {path} has {unknown[0]!r}, which does not exist; expected "
            f"{', '.join(sorted(expected))}"
        )
