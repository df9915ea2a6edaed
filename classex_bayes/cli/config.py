"""Settings from a TOML file, under the names that they have on the command line."""

import tomllib
from collections.abc import Iterable, Iterator
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
    verbs: Any = context.find_root().command
    settings_of = {name: dict(_settings(verb)) for name, verb in verbs.commands.items()}
    options = settings_of[str(context.info_name)]
    chosen: dict[str, Any] = {}
    for table, settings in _tables(_read(path)):
        if table and table not in settings_of:
            raise _unknown(path, f"table [{table}]", settings_of)
        names = set(settings_of[table]) if table else set().union(*settings_of.values())
        for name in settings:
            if name not in names:
                where = f" in [{table}]" if table else ""
                raise _unknown(path, f"{name!r}{where}", settings_of[table] if table else options)
        if not table or settings_of[table] is options:
            chosen.update({name: settings[name] for name in settings if name in options})
    context.default_map = {
        options[name].name: _as_typed(f"{path}: {name}", options[name], value)
        for name, value in chosen.items()
    }
    return path


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise DataError(f"--config: cannot read {path} ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"--config: {path} is no TOML ({error})") from None


def _tables(content: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Settings of the top, without a name, and of each table."""
    tables = {key: value for key, value in content.items() if isinstance(value, dict)}
    top = {key: value for key, value in content.items() if key not in tables}
    for name, settings in {"": top, **tables}.items():
        # Underscores are what the same settings have in Python.
        yield name, {key.replace("_", "-"): value for key, value in settings.items()}


def _settings(verb: Any) -> Iterator[tuple[str, Any]]:
    for setting in verb.params:
        long = [option[2:] for option in setting.opts if option.startswith("--")]
        name = long[0] if long else setting.name
        if name not in _NOT_SETTINGS:
            yield name, setting


def _as_typed(name: str, setting: Any, value: Any) -> Any:
    """A value as it would be typed: numbers of classes with commas; files are a list."""
    values = value if isinstance(value, list) else [value]
    flag = getattr(setting, "is_flag", False)
    several = setting.nargs == -1 or str(setting.metavar).endswith(",...")
    if (isinstance(value, list) and not several) or any(
        isinstance(item, bool) != flag or not isinstance(item, bool | int | float | str)
        for item in values
    ):
        wanted = "true or false" if flag else "numbers or text" if several else "a number or text"
        raise DataError(f"--config: {name}: expected {wanted}, found {value!r}")
    if setting.nargs == -1:
        return values
    return ",".join(map(str, values)) if several else value


def _unknown(path: Path, what: str, names: Iterable[str]) -> DataError:
    expected = ", ".join(sorted(names))
    return DataError(f"--config: {path} has {what}, which does not exist; expected {expected}")
