"""Conversations that check the clauses of other protocols: one module for each protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .gassist import GASSIST
from .kaiak import KAIAK
from .pi import PI
from .waza import WAZA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .steps import Conversation

CONVERSATIONS: Mapping[str, Conversation] = {"waza": WAZA, "gassist": GASSIST, "kaiak": KAIAK, "pi": PI}
