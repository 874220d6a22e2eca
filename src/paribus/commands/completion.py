"""`paribus completion`: scripts that make a shell complete verbs, sweeps, options, config groups and their choices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from paribus.commands.verbs import VERBS, load
from paribus.core.arguments import HELP, VERSION, Arguments, Flag, Option, Positional, Verb, verb
from paribus.core.errors import UserError, suggest

# The shell hands over every word up to the cursor, and gets one candidate per line.
BASH = r"""# paribus for bash: eval "$(paribus completion bash)"
_paribus() {
    local IFS=$'\n' line="${COMP_LINE:0:COMP_POINT}" words last cut
    IFS=' ' read -ra words <<< "$line"
    [[ $line == *' ' ]] && words+=('')
    last="${words[${#words[@]}-1]}"
    cut="${last%"$2"}"  # bash replaces only what follows a = or :
    COMPREPLY=($(paribus __complete "${words[@]:1}" 2>/dev/null))
    COMPREPLY=("${COMPREPLY[@]#"$cut"}")
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=.] ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -F _paribus paribus
"""
ZSH = r"""#compdef paribus
# paribus for zsh: eval "$(paribus completion zsh)"
_paribus() {
    local -a found
    found=("${(@f)$(paribus __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    found=(${found:#})
    if (( ! ${#found} )); then
        compset -P '*='
        _files
        return
    fi
    compadd -S '' -- ${(M)found:#*[=.]}
    compadd -- ${found:#*[=.]}
}
compdef _paribus paribus
"""
FISH = r"""# paribus for fish: paribus completion fish | source
function __paribus_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (paribus __complete $words[2..-1] 2>/dev/null | string match -v '')
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path $words[-1]
    end
end
complete -c paribus -f -a '(__paribus_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
SHELL = Positional("SHELL", "bash, zsh or fish", "", choices=lambda: SCRIPTS)


@verb(
    "Print a completion script for bash, zsh or fish. It completes verbs, sweeps, options, config groups and choices.",
    SHELL,
    example='eval "$(paribus completion bash)"',
)
def completion(given: Arguments) -> int:
    """Print the script. Raises UserError for an unknown shell."""
    if given[SHELL] not in SCRIPTS:
        raise UserError(f"unknown shell '{given[SHELL]}'", suggest(given[SHELL], list(SCRIPTS)))
    print(SCRIPTS[given[SHELL]], end="")
    return 0


def complete(words: Sequence[str]) -> list[str]:
    """The candidates for the last word, given those before it."""
    *before, last = words or [""]
    if not before:
        return _fitting(last, [*VERBS, HELP[1], VERSION[1]])
    if before[0] not in VERBS:
        return []
    declared = load(before[0])
    asked = next((option for option in declared.of(Option) if option.dashed and option.name == before[-1]), None)
    if asked is not None:
        return _fitting(last, asked.choices())
    if last.startswith("-"):
        dashed = [option.name for option in declared.of(Option) if option.dashed]
        return _fitting(last, [*(flag.name for flag in declared.of(Flag)), *dashed, HELP[1]])
    key, equals, value = last.partition("=")
    if equals:
        listed, comma, item = value.rpartition(",")
        return [f"{key}={listed}{comma}{choice}" for choice in _fitting(item, _values(declared, key))]
    return _fitting(last, _words(declared, before[1:]), _keys(declared, last))


def _fitting(start: str, *candidates: Iterable[str]) -> list[str]:
    return [word for words in candidates for word in words if word.startswith(start)]


def _words(declared: Verb, before: Sequence[str]) -> Iterator[str]:
    """The choices of the positional argument, unless it has been typed."""
    if not any("=" not in word and not word.startswith(("-", "~")) for word in before):
        for positional in declared.of(Positional):
            yield from positional.choices()


def _keys(declared: Verb, last: str) -> Iterator[str]:
    """Options, and for a verb that takes overrides the groups, keys, and settings of the group before a dot."""
    from paribus.core.config_names import groups, plain_keys, settings

    options = [option.name for option in declared.of(Option) if not option.dashed]
    yield from (f"{name}=" for name in options)
    if declared.overrides:
        group, dot, _ = last.rpartition(".")
        refused = [] if declared.raw else [name for option in declared.of(Option) for name in option.old]
        known = [*groups(), *(key.name for key in plain_keys())]
        yield from (f"{name}=" for name in known if name not in (*options, *refused))
        yield from (f"{group}.{key}=" for key in settings(group.replace(".", "/")) if dot)


def _values(declared: Verb, key: str) -> Iterable[str]:
    from paribus.core.config import choices

    for option in declared.of(Option):
        if key in (option.name, option.config):
            return option.choices()
    return choices(key) if declared.overrides and key else []
