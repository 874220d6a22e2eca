"""The arguments of a verb: click's, and beside them words `name=value`, for options and for keys of the config."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from paribus.core.config_names import choices as config_choices
from paribus.core.config_names import groups, plain_keys, settings, top_level
from paribus.core.errors import UserError, nearest, suggest

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Kind = TypeVar("Kind", bound=click.Parameter)
Choices = Callable[[], Iterable[str]]  # what a shell may complete

REQUIRED: Any = object()  # in place of the default of an option that the user must give


class Parameter(click.Parameter, Generic[T_co]):
    """What a verb declares: an `Option`, a `Flag` or a `Positional`, whose value is a `T_co`."""

    default: Any  # a `T_co`, unless the parameter is required

    @property
    def label(self) -> str:
        """The parameter as the user types it: `runs=`, `--metric`, `SWEEP`."""
        return self.opts[0]


class Option(Parameter[T_co], click.Option):
    """`name=value`; if the name begins with dashes, `--name VALUE`.

    Args:
        what: one line for the help.
        default: the value if the user does not give it, or `REQUIRED`.
        read: turns the text into the value, or raises a ValueError that says what to write.
        shown: the default as the help prints it, if it is not the value itself.
        config: the config key that the option sets; the user may type that too.
        old: names that the option no longer has.
        multiple: see `repeated`.
    """

    def __init__(
        self,
        name: str,
        what: str,
        default: T_co,
        read: Callable[[str], T_co],
        *,
        shown: str = "",
        config: str = "",
        old: tuple[str, ...] = (),
        choices: Choices = tuple,
        multiple: bool = False,
    ) -> None:
        self.dashed = name.startswith("-")
        required = default is REQUIRED
        usual: dict[str, Any] = {} if required else {"default": default}
        super().__init__(
            [name] if self.dashed else [name, f"{name}="],
            type=_Reader(read),
            multiple=multiple,
            required=required,
            help=what,
            show_default=shown or ("none" if default is None else not required),
            metavar="VALUE" if self.dashed else "",
            **usual,
        )
        self.config, self.old, self.choices = config, old, choices

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Leave `name=value` to `Arguments.take_words`: click's parser takes only names with dashes."""
        if self.dashed:
            super().add_to_parser(parser, ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return _offer(self.choices(), incomplete)


def repeated(name: str, what: str, read: Callable[[str], T], *, shown: str) -> Option[tuple[T, ...]]:
    """An option that may be repeated; `read` reads one of its values."""
    return Option(name, what, (), cast("Any", read), shown=shown, multiple=True)


class Flag(Parameter[bool], click.Option):
    """`--name`."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__([name], is_flag=True, default=False, help=what, show_default="off")


class Positional(Parameter[str], click.Argument):
    """A word without `=`."""

    def __init__(self, name: str, what: str, *, required: bool = True, choices: Choices = tuple) -> None:
        super().__init__([name], help=what, required=required)
        self.choices = choices

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Its choices, and the words `name=value` that may stand before it."""
        return _offer(self.choices(), incomplete) + ctx.command.shell_complete(ctx, incomplete)


class _Reader(click.ParamType[Any]):
    """The type of an option, from a function that reads its text.

    The types of click say what is wrong but not what to type, accept `1_000`, `yes` and `nan`, and do not expand `~`.
    """

    name = "value"

    def __init__(self, read: Callable[[str], object]) -> None:
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises UserError if the text is not such a value. A default may be a value already."""
        try:
            return self.read(value) if isinstance(value, str) else value
        except ValueError as error:
            label = param.opts[0].removesuffix("=") if param else self.name
            raise UserError(f"{label}={value} is not valid", str(error)) from error


class Arguments(click.Context):
    """What the user typed: `given[OPTION]` is the value or the default, `OPTION in given` whether it was typed.

    argv: everything as it was typed.
    overrides: the config overrides, {key: value}; `~key` has the value "".
    """

    argv: tuple[str, ...] = ()

    def __init__(self, command: click.Command, **settings: Any) -> None:
        super().__init__(command, **settings)
        self.overrides: dict[str, str] = {}
        self._typed: dict[str, str] = {}  # the text of each `name=value`, in order of last mention

    def __getitem__(self, parameter: Parameter[T]) -> T:
        return cast("T", self.params.get(parameter.name, parameter.default))  # a verb may lack the parameter

    def __contains__(self, parameter: click.Parameter) -> bool:
        typed = (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)
        return self.get_parameter_source(parameter.name) in typed

    def take_words(self, verb: Verb, argv: Sequence[str]) -> list[str]:
        """Take `name=value` and `~key` out of the arguments, and return those that are left to click.

        Texts of options go into click's `default_map`, from where it converts and checks them.
        """
        left: list[str] = []
        valued = {option.label for option in verb.of(Option) if option.dashed}
        for before, word in zip(["", *argv], argv, strict=False):
            name, equals, text = word.partition("=")
            if before in valued or word.startswith("-") or not (equals or word.startswith("~")):
                left.append(word)
                continue
            if option := verb.find_option(name):
                name = option.name
            else:
                self.overrides[name] = text
            self._typed.pop(name, None)
            self._typed[name] = text
        self.default_map = {name: text for name, text in self._typed.items() if name not in self.overrides}
        return left

    def config(self, *options: Option[object]) -> list[str]:
        """The overrides as texts in order of last mention, and among them these options as their config keys."""
        keys = {key: key for key in self.overrides} | {option.name: option.config or option.name for option in options}
        typed = [(keys[name], text) for name, text in self._typed.items() if name in keys]
        return [key if key.startswith("~") and not text else f"{key}={text}" for key, text in typed]

    def refuse(self, parameters: Iterable[click.Parameter], cause: str, mend: str = "leave it out") -> None:
        """Raises UserError if one of these was typed; `cause` follows its name."""
        for parameter in parameters:
            if parameter in self:
                raise UserError(f"{parameter.opts[0]} {cause}", mend)


class Verb(click.Command):
    """A verb of the command line; its callback takes the Arguments and returns the exit status.

    The docstring of the callback is the help, up to a form feed; the list of verbs shows only its first sentence.

    Args:
        example: a command line, for the help and for errors.
        overrides: whether it takes `key=value` of the config.
        raw: whether it reads `argv` by itself.
        more: writes what the help says before the example.
        attributes: those of `click.Command`.
    """

    context_class = Arguments

    def __init__(
        self,
        name: str,
        *,
        example: str,
        overrides: bool = False,
        raw: bool = False,
        more: Callable[[click.HelpFormatter], None] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(name, **attributes)
        self.example, self.overrides, self.raw, self.more = example, overrides, raw, more
        self.help = " ".join((self.help or "").partition("\f")[0].split())
        self.short_help = self.help.partition(". ")[0].removesuffix(".")
        others = "Every other key=value or group=choice changes the config: see `paribus train --help`.\n\n"
        self.epilog = f"{others * (overrides and not raw)}\b\nExample: {example}"

    def __call__(self, argv: Sequence[str]) -> int:
        """Run the verb, and return its exit status. Raises UserError for bad input."""
        return self.invoke(parse(self, argv))

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The parameters of a class."""
        return [parameter for parameter in self.params if isinstance(parameter, kind)]

    def find_option(self, key: str) -> Option[object] | None:
        """The option that `key=value` sets."""
        plain = [option for option in self.of(Option) if not option.dashed]
        return next((option for option in plain if key and key in (option.name, option.config)), None)

    def invoke(self, ctx: click.Context) -> int:
        return cast("Callable[[click.Context], int]", self.callback)(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what was typed; of an option that is given twice, the last one counts.

        Raises UserError for unknown flags and options, missing or surplus words, and values that are not valid.
        """
        given = cast("Arguments", ctx)
        given.argv = tuple(args)
        if self.raw:
            return super().parse_args(ctx, [text for text in args if text in ctx.help_option_names])
        left = given.take_words(self, args)
        if not ctx.resilient_parsing:  # a shell completes a line that may be wrong
            for key in given.overrides:
                self._check_override(key)
        try:
            return super().parse_args(ctx, left)
        except click.NoSuchOption as error:
            flags = [*(one.opts[0] for one in self.params if one.opts[0].startswith("-")), "--help"]
            option = self.find_option(error.option_name.lstrip("-"))
            mend = f"write {option.label}VALUE" if option else suggest(error.option_name, flags)
            raise UserError(f"{self.name} has no flag '{error.option_name}'", mend) from error
        except click.UsageError as error:
            if isinstance(error, click.MissingParameter) and error.param:
                cause = f"{self.name} needs {'a ' * isinstance(error.param, Positional)}{error.param.opts[0]}"
            else:
                cause = f"{self.name}: {error.format_message().rstrip('.')}"
            raise UserError(cause, f"for example, {self.example}") from error

    def _check_override(self, key: str) -> None:
        """Raises UserError if the verb takes no overrides, or if the key is a former option, or a misspelled option
        and not in the config.
        """
        cause = f"{self.name} has no option '{key}='"
        labels = {option.label.removesuffix("="): option.label for option in self.of(Option)}
        if renamed := next((option for option in self.of(Option) if key in option.old), None):
            raise UserError(cause, f"write {renamed.label}")
        if self.overrides and ("." in key or key in top_level()):
            return
        if near := nearest(key, labels, 0.75 if self.overrides else 0.65):
            raise UserError(cause, f"did you mean {' or '.join(labels[name] for name in near)}?")
        if not self.overrides:
            raise UserError(cause, f"known: {', '.join(labels.values()) or 'none'}")

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        needed = [f"{option.label} VALUE" for option in self.of(Option) if option.required]
        keys = self.overrides or not all(option.dashed for option in self.of(Option))
        return [*super().collect_usage_pieces(ctx), *needed, *["[key=value ...]"] * keys]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.more:
            formatter.write_paragraph()
            self.more(formatter)
        super().format_epilog(ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Flags; options and, for a verb that takes overrides, the groups, keys, and settings of the group before a
        dot; after `=` and after each comma, the choices.
        """
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        key, equals, text = incomplete.partition("=")
        option = self.find_option(key)
        if equals:
            start = incomplete.removesuffix(text.rpartition(",")[2])
            known = option.choices() if option else config_choices(key) if self.overrides and key else []
            return _offer((f"{start}{choice}" for choice in known), incomplete)
        names = [option.name for option in self.of(Option) if not option.dashed]
        if self.overrides:
            old = () if self.raw else [name for option in self.of(Option) for name in option.old]
            names += [name for name in (*groups(), *(key.name for key in plain_keys())) if name not in (*old, *names)]
            group, dot, _ = incomplete.rpartition(".")
            names += [f"{group}.{key}" for key in settings(group.replace(".", "/")) if dot]
        return _offer((f"{name}=" for name in names), incomplete)


def parse(verb: Verb, argv: Sequence[str]) -> Arguments:
    """The arguments of a verb. Raises UserError as `Verb.parse_args` does."""
    return cast("Arguments", verb.make_context(verb.name, list(argv)))


def _offer(words: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def text(value: str) -> str:
    """The text itself. Raises ValueError if it is empty; all readers of values raise ValueError for invalid text."""
    if not value:
        raise ValueError("give a value")
    return value


def path(value: str) -> Path:
    return Path(text(value)).expanduser()


def folder(value: str) -> Path:
    """A folder, which need not exist."""
    place = path(value)
    if place.exists() and not place.is_dir():
        raise ValueError("it is a file; give a folder")
    return place


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
        read = float(value)
    except ValueError:
        read = math.nan
    if not math.isfinite(read):
        raise ValueError("write a finite number")
    return read


def names(value: str) -> tuple[str, ...]:
    """`a,b` or `[a,b]`; a name may hold blanks, as a column's often does."""
    bare = value.strip()
    listed = bare[1:-1] if bare.startswith("[") and bare.endswith("]") else bare
    read = tuple(name.strip() for name in listed.split(",") if name.strip())
    if not read:
        raise ValueError("write names or numbers with commas between them")
    return read


def setting(value: str) -> tuple[str, str]:
    """`column=value`."""
    column, equals, wanted = value.partition("=")
    if not column or not equals:
        raise ValueError("write COLUMN=VALUE")
    return column, wanted


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
