"""`wtal completion SHELL`: a script with which bash, zsh or fish complete commands, options and recipes."""

import io
import re
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from importlib import import_module

from wtal.errors import InputError

#: where each shell reads the script from
_USE = {
    "bash": "wtal completion bash > ~/.local/share/bash-completion/completions/wtal",
    "zsh": 'wtal completion zsh >> ~/.zshrc      # after the line "autoload -U compinit && compinit"',
    "fish": "wtal completion fish > ~/.config/fish/completions/wtal.fish",
}


def main(arguments: Sequence[str]) -> None:
    """Print the script for the shell that the arguments name."""
    if list(arguments) in ([], ["-h"], ["--help"]):
        print("usage: wtal completion bash|zsh|fish\n\nPrint a script that completes wtal's arguments. To install it:")
        print("\n".join(f"  {line}" for line in _USE.values()))
    elif len(arguments) == 1 and arguments[0] in _USE:
        words = _words()
        print(_fish(words) if arguments[0] == "fish" else _bash(words, zsh=arguments[0] == "zsh"))
    else:
        raise InputError(f"wanted wtal completion bash, zsh or fish; got {' '.join(arguments)}")


def _words() -> dict[str, list[str]]:
    """What may follow each command: what its own help names, and the recipes that come with wtal."""
    from wtal.cli import COMMANDS
    from wtal.cli.data import SUBCOMMANDS as DATA
    from wtal.cli.formats import SUBCOMMANDS as FORMATS

    def options(command: str, *arguments: str) -> list[str]:
        text = io.StringIO()
        with redirect_stdout(text), suppress(SystemExit):
            import_module(f"wtal.cli.{command}").main([*arguments, "--help"])
        named = "\n".join(re.findall(r"^[│ ] *(-+[a-z].*?)(?:  .*)?$", text.getvalue(), re.MULTILINE))
        return list(dict.fromkeys(re.findall(r"--[a-z][a-z0-9-]*", named)))

    grouped = {"data": DATA, "formats": FORMATS}
    words = {command: options(command) for command in COMMANDS if command not in (*grouped, "help", "completion")}
    with suppress(ImportError):  # without the extra train there is nothing to do with recipes
        from wtal.training.config import shipped_recipes

        words["train"] += shipped_recipes()
    for group, names in grouped.items():
        words[group] = list(dict.fromkeys([*names, *(word for name in names for word in options(group, name))]))
    words["help"], words["completion"] = list(words), list(_USE)
    return words


def _bash(words: dict[str, list[str]], *, zsh: bool) -> str:
    cases = "\n".join(f'    {command}) words="{" ".join(found)}" ;;' for command, found in words.items())
    return "\n".join(
        [
            *(["autoload -U +X bashcompinit && bashcompinit"] if zsh else []),
            "_wtal() {",
            '  local words current="${COMP_WORDS[COMP_CWORD]}"',
            '  if [ "$COMP_CWORD" -eq 1 ]; then',
            f'    COMPREPLY=($(compgen -W "{" ".join(words)} --help --version" -- "$current")); return',
            "  fi",
            '  case "${COMP_WORDS[1]}" in',
            cases,
            "  esac",
            '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "}",
            "complete -o default -F _wtal wtal",
        ]
    )


def _fish(words: dict[str, list[str]]) -> str:
    lines = [f"complete -c wtal -n __fish_use_subcommand -f -a '{' '.join(words)}'"]
    for command, found in words.items():
        seen = f"-n '__fish_seen_subcommand_from {command}'"
        plain = " ".join(word for word in found if not word.startswith("--"))
        lines += [f"complete -c wtal {seen} -l {word[2:]}" for word in found if word.startswith("--")]
        lines += [f"complete -c wtal {seen} -a '{plain}'"] if plain else []
    return "\n".join(lines)
