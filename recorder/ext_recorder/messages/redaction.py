"""Redaction by `--redact`, `--redact-except` and `--no-redact`.

`record`, `replay`, `verify`, `scrub`, `convert` and the HTTP layer use the same rules, so that a live request is
redacted as the recorded one was. Rules of users are in `redaction_rules`, which is imported only if there are any.
"""

from __future__ import annotations

import os

from ext_recorder.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ext_sdk.core.redaction.redactor import Redactor

    from .redaction_rules import OwnRules

FORMS = ("pattern", "pointer", "key", "value")
PLACEHOLDER = rb"\[redacted:([A-Za-z0-9_.-]{1,96})#([0-9]{1,9})\]"  # regular expression: rule and number


class ProjectVariable(str):
    """Name of an environment variable in a project file: it may be missing on machines that do not record."""

    __slots__ = ()


class Redaction:
    """Redaction options; picklable.

    Args:
        redact: values of `--redact`: NAME, `pattern:REGEX`, `pointer:POINTER`, `key:GLOB`, or a rule as JSON.
        excepted: values of `--redact-except`: the same, and `value:TEXT`.
        built_in: apply the default redaction, too: known formats of secrets, and variables with the names of secrets.
        further: secret values by the name of their placeholders.

    Raises:
        UsageError: a value is not of these forms.
    """

    __slots__ = ("_built_in", "_excepted", "_further", "_names", "_redact", "_spared_names")

    def __init__(
        self,
        redact: Iterable[str] = (),
        excepted: Iterable[str] = (),
        *,
        built_in: bool = True,
        further: Mapping[str, str] | None = None,
    ) -> None:
        redact, excepted = tuple(redact), tuple(excepted)
        self._names = tuple(entry for entry in redact if _is_name(entry))
        self._redact = tuple(entry for entry in redact if not _is_name(entry))
        self._spared_names = tuple(entry for entry in excepted if _is_name(entry))
        self._excepted = tuple(entry for entry in excepted if not _is_name(entry))
        if wrong := next((name for name in self._spared_names if ":" in name), ""):
            forms = "the name of an environment variable, value:TEXT, pattern:REGEX, pointer:POINTER or key:GLOB"
            raise UsageError(f"--redact-except {wrong}: expected {forms}")
        self._built_in = built_in
        self._further = dict(further or {})
        self._own()

    @classmethod
    def of(cls, values: Mapping[str, tuple[str, ...]], further: Mapping[str, str] | None = None) -> Redaction:
        """Return the redaction of a command line. Raises UsageError."""
        return cls(values["redact"], values["redact-except"], built_in=not values["no-redact"], further=further)

    @property
    def off(self) -> bool:
        """Return True if only users' own rules redact."""
        return not self._built_in

    def require(self, environment: Mapping[str, str] = os.environ, *, for_recording: bool = True) -> list[str]:
        """Check that the variables of `--redact` exist.

        Args:
            environment: the environment variables.
            for_recording: messages are recorded, so variables of a project file must exist, too.

        Returns:
            Notes about variables of a project file that do not exist.

        Raises:
            UsageError: a variable does not exist.
        """
        notes = []
        for name in [name for name in self._names if name not in environment]:
            if not isinstance(name, ProjectVariable):
                forms = "pattern:REGEX, pointer:POINTER, key:GLOB"
                raise UsageError(
                    f"--redact {name}: expected the name of an environment variable, which does not exist, or {forms}"
                )
            text = f"redact {name} in the project file: this environment variable is not set"
            if for_recording:
                remedy = "so that its value cannot be recognized; set it, to any text if the child does not use it"
                raise UsageError(f"{text}, {remedy}")
            notes.append(f"{text}; its value is not recognized")
        return notes

    def secrets(self, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return known values by the name of their placeholders."""
        from ext_sdk.core.redaction.secret_names import secret_variables

        values = secret_variables(environment) if self._built_in else {}
        values |= {f"env.{name}": environment[name] for name in self._names if name in environment}
        for name in self._spared_names:
            values.pop(f"env.{name}", None)
        return values | self._further

    def redactor(self, environment: Mapping[str, str] = os.environ) -> Redactor:
        """Return a redactor with these rules."""
        from ext_sdk.core.redaction.redactor import Redactor

        return Redactor(self.secrets(environment), rules=self._built_in, own=self._own())

    def _own(self) -> OwnRules | None:
        if not self._redact and not self._excepted:
            return None
        from .redaction_rules import OwnRules

        return OwnRules(self._redact, self._excepted)


def table(given: dict[str, object]) -> list[str]:
    """Return a table of a project file as a value of the option: a rule as JSON. Raises ValueError if it is wrong."""
    from ext_sdk.core.wire.json_codec import dumps

    from .redaction_rules import read

    text = dumps(given)
    try:
        read("redact", text)
    except UsageError as wrong:
        raise ValueError(str(wrong).removeprefix(f"--redact {text}: ")) from None
    return [text]


def _is_name(text: str) -> bool:
    return not text.startswith("{") and text.partition(":")[0] not in FORMS
