"""The arguments of a verb, declared once: parsing, checks, `--help` pages and completion all use the declaration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import Generic, TypeVar, cast

from paribus.core.config_names import top_level
from paribus.core.errors import UserError, nearest, suggest

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Kind = TypeVar("Kind", bound="Argument[object]")

HELP = ("-h", "--help")
VERSION = ("-V", "--version")
WIDTH = max(60, min(100, get_terminal_size((100, 0)).columns))  # of pages of help


@dataclass(frozen=True)
class Argument(Generic[T_co]):
    """`name` as the user types it, one line for the help, and the value if the user does not give it.

    choices: what a shell may complete.
    """

    name: str
    what: str
    default: T_co
    choices: Callable[[], Iterable[str]] = field(default=tuple, kw_only=True)


@dataclass(frozen=True)
class Option(Argument[T_co]):
    """`name=value`; if the name begins with dashes, `--name VALUE`.

    read: turns the text into the value, or raises a ValueError that says what to write.
    shown: the default as the help prints it, if it is not the value itself.
    config: the config key that the option sets; the user may type that too.
    old: names that the option no longer has.
    many: whether it may be repeated; its value is then a tuple of all values, and `read` returns a tuple of one.
    required: whether the user must give it.
    """

    read: Callable[[str], T_co]
    shown: str = field(default="", kw_only=True)
    config: str = field(default="", kw_only=True)
    old: tuple[str, ...] = field(default=(), kw_only=True)
    many: bool = field(default=False, kw_only=True)
    required: bool = field(default=False, kw_only=True)

    @property
    def dashed(self) -> bool:
        """Whether it is typed as `--name VALUE`."""
        return self.name.startswith("-")

    def value(self, text: str) -> T_co:
        """Raises UserError if the text is not such a value."""
        try:
            return self.read(text)
        except ValueError as error:
            raise UserError(f"{self.name}={text} is not valid", str(error)) from error


class Flag(Argument[bool]):
    """`--name`."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(name, what, False)


@dataclass(frozen=True)
class Positional(Argument[str]):
    """A word without `=`."""

    required: bool = True


class Arguments:
    """What the user typed: `given[OPTION]` is the value or the default, `OPTION in given` whether it was typed.

    overrides: the config overrides, {key: value}; `~key` has the value "".
    argv: everything as it was typed.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self.argv = tuple(argv)
        self.overrides: dict[str, str] = {}
        self._values: dict[str, object] = {}
        self._typed: dict[str, str] = {}

    def __getitem__(self, argument: Argument[T]) -> T:
        return self.get(argument, argument.default)

    def get(self, argument: Argument[T], default: T) -> T:
        """The value, or this default if the user did not type it."""
        return cast("T", self._values.get(argument.name, default))

    def __contains__(self, argument: object) -> bool:
        return isinstance(argument, Argument) and argument.name in self._values

    def set(self, argument: Argument[T], value: T, text: str) -> None:
        self._values[argument.name] = value
        self._type(argument.name, text)

    def override(self, key: str, value: str) -> None:
        self.overrides[key] = value
        self._type(key, value)

    def _type(self, key: str, text: str) -> None:
        self._typed.pop(key, None)
        self._typed[key] = text

    def config(self, *options: Option[object]) -> list[str]:
        """The overrides as texts in order of last mention, and among them these options as their config keys."""
        keys = {
            **{key: key for key in self.overrides},
            **{option.name: option.config or option.name for option in options},
        }
        typed = [(keys[name], text) for name, text in self._typed.items() if name in keys]
        return [key if key.startswith("~") and not text else f"{key}={text}" for key, text in typed]

    def refuse(self, arguments: Iterable[Argument[object]], cause: str, mend: str = "leave it out") -> None:
        """Raises UserError if one of these was typed; `cause` follows its name."""
        for argument in arguments:
            if argument in self:
                raise UserError(f"{argument.name}{'=' * isinstance(argument, Option)} {cause}", mend)


@dataclass(frozen=True)
class Verb:
    """A verb of the command line; calling it with an argv parses that and runs the verb.

    what: what it does; the list of verbs shows only the first sentence. `more` is printed at the end of the verb's
    page.
    overrides: whether it takes `key=value` of the config.
    raw: whether it reads `argv` by itself.
    """

    name: str
    what: str
    arguments: tuple[Argument[object], ...]
    example: str
    run: Callable[[Arguments], int]
    overrides: bool = False
    raw: bool = False
    more: Callable[[], str] | None = None

    def __call__(self, argv: Sequence[str]) -> int:
        """Returns the exit status. Raises UserError for bad input."""
        return self.run(Arguments(argv) if self.raw else parse(self, argv))

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [argument for argument in self.arguments if isinstance(argument, kind)]

    def help(self) -> str:
        """The page that `--help` prints."""
        words = " ".join(one.name if one.required else f"[{one.name}]" for one in self.of(Positional))
        named = [(f"{option.name} VALUE", option.required) for option in self.of(Option) if option.dashed]
        dashed = " ".join(text if required else f"[{text}]" for text, required in named)
        plain = any(not option.dashed for option in self.of(Option)) or self.overrides
        options = "[key=value ...]" if plain else ""
        flags = " ".join(f"[{flag.name}]" for flag in self.of(Flag))
        usage = " ".join(part for part in ("paribus", self.name, words, dashed, options, flags) if part)
        lines = [fill(f"usage: {usage}", WIDTH, subsequent_indent="    "), "", fill(self.what, WIDTH), ""]
        entries = [_entry(argument) for argument in self.arguments] + [(", ".join(HELP), "print this page")]
        width = max(len(name) for name, _ in entries)
        indent = " " * (width + 4)
        lines += [fill(f"  {name:<{width}}  {text}", WIDTH, subsequent_indent=indent) for name, text in entries]
        if self.overrides and not self.raw:
            more = "Every other key=value or group=choice changes the config: see `paribus train --help`."
            lines += ["", fill(more, WIDTH)]
        lines += ["", self.more()] if self.more else []
        return "\n".join([*lines, "", f"Example: {self.example}"])


def verb(
    what: str,
    *arguments: Argument[object],
    example: str,
    overrides: bool = False,
    raw: bool = False,
    more: Callable[[], str] | None = None,
) -> Callable[[Callable[[Arguments], int]], Verb]:
    """Declare a function as the verb of its name; see `Verb`."""

    def declare(run: Callable[[Arguments], int]) -> Verb:
        return Verb(run.__name__, what, arguments, example, run, overrides, raw, more)

    return declare


def _entry(argument: Argument[object]) -> tuple[str, str]:
    """(name, what it is, with its default or that it is required) for the help."""
    if isinstance(argument, Positional):
        return argument.name, argument.what
    if isinstance(argument, Option):
        usual = "none" if argument.default is None else str(argument.default)
        name = f"{argument.name} VALUE" if argument.dashed else f"{argument.name}="
        note = "required" if argument.required else f"default: {argument.shown or usual}"
        return name, f"{argument.what} ({note})"
    return argument.name, f"{argument.what} (default: off)"


def parse(verb: Verb, argv: Sequence[str]) -> Arguments:
    """Read the arguments of a verb; if an option is given twice, the last one counts.

    Raises UserError for unknown flags and options, missing or surplus words, and values that are not valid.
    """
    given = Arguments(argv)
    words = []
    waiting = iter(argv)
    for text in waiting:
        key, equals, value = text.partition("=")
        if option := _option(verb, key) if equals or text.startswith("-") else None:
            value = value if equals else next(waiting, "")
            given.set(option, _gather(given, option, value), value)
        elif text.startswith("-"):
            given.set(_flag(verb, text), True, text)
        elif equals or text.startswith("~"):
            _check_override(verb, key)
            given.override(key, value)
        else:
            words.append(text)
    for positional, word in _words(verb, words):
        given.set(positional, word, word)
    for option in verb.of(Option):
        if option.required and option not in given:
            raise UserError(f"{verb.name} needs {option.name}", f"for example, {verb.example}")
    return given


def _gather(given: Arguments, option: Option[object], text: str) -> object:
    """The value of an option, appended to earlier values if the option may be repeated."""
    value = option.value(text)
    return (*cast("tuple[object, ...]", given[option]), *cast("tuple[object, ...]", value)) if option.many else value


def _flag(verb: Verb, text: str) -> Flag:
    flags = {flag.name: flag for flag in verb.of(Flag)}
    if text in flags:
        return flags[text]
    key = text.lstrip("-").partition("=")[0]
    if key in (option.name for option in verb.of(Option)):
        raise UserError(f"{verb.name} has no flag '{text}'", f"write {key}=VALUE")
    valued = [option.name for option in verb.of(Option) if option.name.startswith("-")]
    raise UserError(f"{verb.name} has no flag '{text}'", suggest(text, [*flags, *valued, HELP[1]]))


def _option(verb: Verb, key: str) -> Option[object] | None:
    for option in verb.of(Option):
        if key in (option.name, option.config):
            return option
        if key in option.old:
            raise UserError(f"{verb.name} has no option '{key}='", f"write {option.name}=")
    return None


def _check_override(verb: Verb, key: str) -> None:
    """Raises UserError if the verb takes no overrides, or if the key is a misspelled option and not in the config."""
    if verb.overrides and ("." in key or key in top_level()):
        return
    names = [option.name for option in verb.of(Option)]
    if near := nearest(key, names, 0.75 if verb.overrides else 0.65):
        raise UserError(
            f"{verb.name} has no option '{key}='", f"did you mean {' or '.join(f'{name}=' for name in near)}?"
        )
    if not verb.overrides:
        known = ", ".join(f"{name}=" for name in names)
        raise UserError(f"{verb.name} has no option '{key}='", f"known: {known or 'none'}")


def _words(verb: Verb, words: Sequence[str]) -> Iterator[tuple[Positional, str]]:
    known = verb.of(Positional)
    if len(words) > len(known):
        named = f"{'one ' * (len(known) == 1)}{' and '.join(one.name for one in known)}"
        takes = f"{named}, got {len(words)} ({', '.join(words)})" if known else f"no word '{words[0]}'"
        raise UserError(f"{verb.name} takes {takes}", f"for example, {verb.example}")
    for missing in known[len(words) :]:
        if missing.required:
            raise UserError(f"{verb.name} needs a {missing.name}", f"for example, {verb.example}")
    yield from zip(known, words, strict=False)


def text(value: str) -> str:
    """The text itself. Raises ValueError if it is empty; all readers of values raise ValueError for invalid text."""
    if not value:
        raise ValueError("give a value")
    return value


def path(value: str) -> Path:
    return Path(text(value)).expanduser()


def folder(value: str) -> Path:
    """A folder, which need not exist."""
    found = path(value)
    if found.exists() and not found.is_dir():
        raise ValueError("it is a file; give a folder")
    return found


def whole(least: int, step: int = 1, most: float = math.inf) -> Callable[[str], int]:
    """A reader of whole numbers from `least` to `most` that are multiples of `step`."""
    limit = f" and at most {most}" if math.isfinite(most) else ""

    def read(value: str) -> int:
        if not value.isdecimal() or not least <= int(value) <= most or int(value) % step:
            kind = "whole number" if step == 1 else f"multiple of {step}"
            raise ValueError(f"write a {kind}, at least {least}{limit}")
        return int(value)

    return read


def number(value: str) -> float:
    """A finite number."""
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ValueError("write a finite number")
    return found


def names(value: str) -> tuple[str, ...]:
    """`a,b` or `[a,b]`; a name may hold blanks, as a column's often does."""
    bare = value.strip()
    listed = bare[1:-1] if bare.startswith("[") and bare.endswith("]") else bare
    found = tuple(name.strip() for name in listed.split(",") if name.strip())
    if not found:
        raise ValueError("write names or numbers with commas between them")
    return found


def setting(value: str) -> tuple[str, str]:
    """`column=value`."""
    column, equals, wanted = value.partition("=")
    if not column or not equals:
        raise ValueError("write COLUMN=VALUE")
    return column, wanted


def repeated(read: Callable[[str], T]) -> Callable[[str], tuple[T, ...]]:
    """A reader of one value of an option that may be repeated."""

    def read_one(value: str) -> tuple[T, ...]:
        return (read(value),)

    return read_one


def switch(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError("write true or false")
    return value.lower() == "true"


def choice(known: Iterable[str]) -> Callable[[str], str]:
    """A reader of one of these words."""

    def read(value: str) -> str:
        if value not in known:
            raise ValueError(suggest(value, list(known)))
        return value

    return read
