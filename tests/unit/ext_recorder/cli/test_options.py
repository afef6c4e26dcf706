"""Options that several commands have."""

from __future__ import annotations

from ext_recorder.cli.commands import COMMANDS, NAMES
from ext_recorder.cli.commands.edit import FORMATS
from ext_recorder.cli.options import FRAMINGS, ORDERS
from ext_recorder.replay.replay import ORDERS as PLAYED_ORDERS
from ext_recorder.tools.convert import NAMES as KNOWN_FORMATS
from ext_sdk.core.wire.framing import FRAMINGS as KNOWN_FRAMINGS


def test_copies_of_choices_equal_the_originals() -> None:
    assert set(FRAMINGS) == set(KNOWN_FRAMINGS)
    assert set(ORDERS) == set(PLAYED_ORDERS)
    assert FORMATS == KNOWN_FORMATS


def test_no_option_has_the_name_of_a_command() -> None:
    options = {option.name for command in COMMANDS.values() for option in command.options if option.key}
    assert not options & {*NAMES, "cassettes", "command"}
