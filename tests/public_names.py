"""Every public function, class and method of a class, once, by its dotted name."""

import inspect
from types import ModuleType

import classex_bayes


def _public(module):
    """Names and values of a module, then those of the rooms that it names."""
    names = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    for name, value in names.items():
        if not isinstance(value, str | ModuleType):
            yield f"{module.__name__}.{name}", value
    for value in names.values():
        if isinstance(value, ModuleType):
            yield from _public(value)


def _methods(name, owner):
    """Methods and properties of a class that classes of the package define."""
    for member in dir(owner):
        function = inspect.getattr_static(owner, member)
        function = getattr(function, "__func__", getattr(function, "fget", function))
        ours = str(getattr(function, "__module__", "")).startswith("classex_bayes")
        if inspect.isfunction(function) and ours and not member.startswith("_"):
            yield f"{name}.{member}", function


# A name at the top may stand in a room, too.
NAMES = {value: name for name, value in reversed(list(_public(classex_bayes)))}
NAMES = {name: value for value, name in reversed(NAMES.items())}
METHODS = {
    full_name: method
    for name, value in NAMES.items()
    if inspect.isclass(value)
    for full_name, method in _methods(name, value)
}
PUBLIC = NAMES | METHODS
