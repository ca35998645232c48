"""Hyper-parameters, declared once: type, default, bounds, help text and search range.

A subclass of `Declared` is a dataclass with keyword arguments that checks its values::

    class GCN(Declared):
        hidden: int = parameter(16, at_least=1, search=Choice(16, 32), help="width of the hidden layers")

The constructor, its checks and its docstring, search spaces, `--set` on the command line, model files and the
documentation all read the declaration.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from math import inf
from numbers import Integral, Real
from operator import ge, gt, le, lt
from textwrap import fill
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Union, dataclass_transform, get_args, get_origin, get_type_hints

from fairpass.errors import DataError, in_digits
from fairpass.files import LARGEST_WHOLE

Plain = str | int | float | bool | None

# Limits of parameters that declare none: products of larger numbers overflow float32, products of smaller positive
# numbers underflow to zero, and more steps would never finish.
LARGEST, SMALLEST, MOST = 1e12, 1e-12, 1_000_000
MOST_NODES = 2**31 - 1  # where a parameter counts nodes
LARGEST_SEED = 2**32 - 1  # the limit of NumPy and scikit-learn; torch accepts larger seeds
MOST_EPOCHS = 1_000_000_000  # far more than needed, as a training can be interrupted and continued
MOST_SEEDS, MOST_JOBS = 10_000, 1024  # of a command
MOST_CLASSES = 1_000  # labels, or groups: tables and networks have room for each up to the largest index
LARGEST_RATE = 1e30  # of learning; training diverges at much smaller rates, and says so

_EMPTY = inspect.Parameter.empty
_BOUNDS = {"at_least": ge, "above": gt, "at_most": le, "below": lt}


@dataclass(frozen=True, init=False)
class Choice:
    """One of some values; a single value is fixed."""

    values: tuple[Plain, ...]

    def __init__(self, *values: Plain) -> None:
        if not values:
            raise ValueError("'values' must hold at least one value (got none)")
        if len({(type(value), value) for value in values}) < len(values):
            raise ValueError(f"'values' must be different from each other (got {values})")
        object.__setattr__(self, "values", values)

    def ends(self) -> tuple[Plain, ...]:
        """Values that suffice to check that a parameter accepts all of them."""
        return self.values

    def contains(self, value: Any) -> bool:
        return value in self.values

    def read(self, value: Any) -> Any:
        """Return the parameter's value for a value that a search found; numbers are rounded to be readable."""
        return value


@dataclass(frozen=True)
class Uniform:
    """A number from `low` to `high`, uniformly distributed."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not -inf < self.low < self.high < inf:
            raise ValueError(f"'low' must be less than 'high', both finite (got {self.low} and {self.high})")

    def ends(self) -> tuple[Plain, ...]:
        return (self.low, self.high)

    def contains(self, value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high

    def read(self, value: Any) -> Any:
        return float(f"{value:.4g}")


class LogUniform(Uniform):
    """A positive number from `low` to `high`, its logarithm uniformly distributed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low > 0:
            raise ValueError(f"'low' must be positive (got {self.low})")


class Integers(Uniform):
    """A whole number from `low` to `high`, both included."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.low, int) and isinstance(self.high, int)):
            raise ValueError(f"'low' and 'high' must be whole numbers (got {self.low} and {self.high})")

    def contains(self, value: Any) -> bool:
        return isinstance(value, int) and super().contains(value)

    def read(self, value: Any) -> Any:
        return int(value)


Dimension = Choice | Uniform


@dataclass(frozen=True)
class Parameter:
    """A declared parameter: its name and type, and the arguments of `parameter`."""

    name: str
    default: Any
    hint: Any
    help: str = ""
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    limit: float | None = None
    search: Dimension | None = None
    grid: Choice | None = None
    per_member: bool = False
    before: Any = _EMPTY

    def check(self, value: Any) -> None:
        """Raise `ValueError` unless the value has the declared type and is within the bounds."""
        if value is self.default:
            return
        kinds = alternatives(self.hint)
        if not any(_is_a(value, kind) for kind in kinds):
            raise ValueError(f"'{self.name}' must be {' or '.join(map(_in_words, kinds))} (got {value!r})")
        bounds = [(is_within, getattr(self, name)) for name, is_within in _BOUNDS.items()]
        if isinstance(value, Real) and not all(bound is None or is_within(value, bound) for is_within, bound in bounds):
            raise ValueError(f"'{self.name}' must be {self.bounds} (got {value})")
        if isinstance(value, Real) and not isinstance(value, bool) and not self._is_usual(value):
            raise ValueError(f"'{self.name}' must be {self._usual(value)} (got {value})")

    def _is_usual(self, value: Any) -> bool:
        """Return whether a number is within the limit and not almost zero."""
        return abs(value) <= self._limit and not (self.above == 0 and value < SMALLEST)

    @property
    def _limit(self) -> float:
        kinds = alternatives(self.hint)
        return self.limit or (MOST if int in kinds and float not in kinds else LARGEST)

    def _usual(self, value: Any) -> str:
        if abs(value) <= self._limit:
            return f"at least {SMALLEST:g}"
        return " and ".join(filter(None, [self.bounds.replace(" and finite", ""), f"at most {in_digits(self._limit)}"]))

    @property
    def bounds(self) -> str:
        """The bounds in words; empty if there are none."""
        if (self.at_least, self.at_most) == (0, 1):
            return "between 0 and 1"
        given = {name: bound for name in _BOUNDS if (bound := getattr(self, name)) is not None}
        short = {("above", 0): "positive", ("below", inf): "finite"}
        words = {each: f"{each[0].replace('_', ' ')} {in_digits(each[1])}" for each in given.items()}
        return " and ".join(short.get(each, usual) for each, usual in words.items())

    @property
    def values(self) -> str:
        """The allowed values in words, for the documentation."""
        literals = [repr(choice) for kind in alternatives(self.hint) for choice in choices(kind)]
        return ", ".join(filter(None, [self.bounds, *literals]))


def parameter(
    default: Any, help: str = "", search: Dimension | None = None, grid: Choice | None = None, **declaration: Any
) -> Any:
    """Declare a parameter of a `Declared` class; `search` is the recommended range, `grid` that of a grid search.

    Args:
        declaration: the bounds `at_least`, `above`, `at_most` and `below`; `limit`, the largest absolute
            value, if it differs from that of other parameters; `per_member`, whether members of one
            population may differ in it; `before`, the value that reproduces version 0.1 if it was added later.
    """
    return field(default=default, metadata={"help": help, "search": search, "grid": grid, **declaration})


@dataclass_transform(kw_only_default=True, eq_default=False)
class Declared:
    """Base of classes with declared parameters: subclasses become dataclasses with keyword arguments.

    A subclass may also write its own `__init__`. Its arguments are then its parameters, and it has to check them.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    declared: ClassVar[Mapping[str, Parameter]] = {}
    per_member: ClassVar[tuple[str, ...]] = ()
    before: ClassVar[Mapping[str, Any]] = {}
    parameter_order: ClassVar[tuple[str, ...]] = ()  # to list first, in classes that inherit some of their parameters
    _writes_init: ClassVar[bool] = False

    def __init_subclass__(cls, *, frozen: bool = False, kw_only: bool = True, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls._writes_init = cls._writes_init or "__init__" in vars(cls)
        dataclass(init=not cls._writes_init, frozen=frozen, kw_only=kw_only, eq=frozen, repr=False)(cls)
        cls.declared = _of_init(cls) if cls._writes_init else _of_fields(cls)
        cls.per_member = tuple(name for name, each in cls.declared.items() if each.per_member)
        if "before" not in vars(cls):
            cls.before = {name: each.before for name, each in cls.declared.items() if each.before is not _EMPTY}
        kind = inspect.Parameter.KEYWORD_ONLY if kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        arguments = [
            inspect.Parameter(
                name, kind, default=_EMPTY if each.default is MISSING else each.default, annotation=each.hint
            )
            for name, each in cls.declared.items()
        ]
        cls.__signature__ = inspect.Signature(arguments)  # type: ignore[attr-defined] # `inspect` looks for it
        cls.__doc__ = _with_arguments(cls.__doc__ or "", cls.declared)

    def __post_init__(self) -> None:
        for name, each in self.declared.items():
            if name in self.__dataclass_fields__:  # arguments of a written `__init__` are not set yet
                value = getattr(self, name)
                each.check(value)
                object.__setattr__(self, name, _plain(value))  # also of a frozen class
        self.check_parameters()

    def check_parameters(self) -> None:
        """Raise `ValueError` if values do not fit together, and fill in defaults that depend on other values."""

    def __repr__(self) -> str:
        # Defaults that depend on other values are not shown either.
        needed = any(each.default in (MISSING, _EMPTY) for each in self.declared.values())
        usual = None if needed else type(self)()
        shown = [
            f"{name}={value!r}"
            for name, each in self.declared.items()
            if (value := getattr(self, name)) not in (each.default, getattr(usual, name, each.default))
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def check_count(name: str, value: int, least: int = 1, most: int = MOST) -> None:
    """Raise `ValueError` unless a value is a whole number between `least` and `most`."""
    if not _is_a(value, int):
        raise ValueError(f"'{name}' must be a whole number (got {value!r})")
    if not value >= least:
        raise ValueError(f"'{name}' must be at least {least} (got {value})")
    if not value <= most:
        raise ValueError(f"'{name}' must be at most {most:,} (got {value})")


def check_seed(name: str, value: int) -> None:
    """Raise `ValueError` unless a seed is accepted by every library that draws random numbers."""
    check_count(name, value, 0, LARGEST_SEED)


def check_index(name: str, highest: int) -> None:
    """Raise `DataError` if the largest index of labels or groups is so large that counts of each would fill memory."""
    if highest >= MOST_CLASSES:
        raise DataError(f"'{name}' must be below {MOST_CLASSES:,} (got {highest})")


def _of_fields(cls: type[Declared]) -> dict[str, Parameter]:
    # Its own parameters first, then those of its bases.
    hints = get_type_hints(cls)
    found = {each.name: Parameter(each.name, each.default, hints[each.name], **each.metadata) for each in fields(cls)}
    names = [*cls.parameter_order, *(name for base in cls.__mro__ for name in inspect.get_annotations(base))]
    return {name: found[name] for name in names if name in found}


def _of_init(cls: type[Declared]) -> dict[str, Parameter]:
    hints = get_type_hints(cls.__init__)
    arguments = list(inspect.signature(cls.__init__).parameters.values())[1:]
    return {each.name: Parameter(each.name, each.default, hints.get(each.name, Any)) for each in arguments}


def _with_arguments(docstring: str, declared: Mapping[str, Parameter]) -> str:
    described = [each for each in declared.values() if each.help]
    if not described or "Args:" in docstring:
        return docstring
    texts = [f"{each.name}: {each.help}{f' ({each.values})' if each.values else ''}." for each in described]
    lines = [fill(text, 116, initial_indent=" " * 4, subsequent_indent=" " * 8) for text in texts]
    return "\n".join([inspect.cleandoc(docstring), "", "Args:", *lines])


def alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def choices(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()


def _is_a(value: Any, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return any(isinstance(value, type(choice)) and value == choice for choice in get_args(kind))
    if get_origin(kind) is Callable:
        return callable(value)
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if kind is bool:
        return not getattr(value, "shape", ()) and value in (True, False)
    return kind not in (str, NoneType) or isinstance(value, kind)


def _plain(value: Any) -> Any:
    """Convert numbers of other libraries to Python's: NumPy integers wrap around, and a `Fraction` is not a float.

    A whole number too large for a file becomes a float; only parameters that take floats have such limits.
    """
    if type(value) is int and abs(value) >= LARGEST_WHOLE:
        return float(value)
    if type(value) in (bool, int, float):
        return value
    return int(value) if isinstance(value, Integral) else float(value) if isinstance(value, Real) else value


def _in_words(kind: Any) -> str:
    words = {int: "a whole number", float: "a number", bool: "True or False", str: "text", NoneType: "None"}
    return f"one of {choices(kind)}" if choices(kind) else words.get(kind, "a function")
