"""What a monitor has counted, as one line of JSON that continues with the same numbers."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self

import msgspec

from ..errors import InputError


class Saved:
    """A dataclass whose fields are its whole state."""

    def to_json(self) -> str:
        """Return the state as JSON, which `from_json` reads back to the last bit."""
        return msgspec.json.encode({"monitor": type(self).__name__, **msgspec.to_builtins(self)}).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Go on from what `to_json` wrote; text that no monitor of this kind wrote is refused."""
        try:
            content: Any = msgspec.json.decode(text)
            names = {"monitor", *(field.name for field in fields(cls))}  # type: ignore[arg-type]
            if not isinstance(content, dict) or content.pop("monitor", None) != cls.__name__:
                raise InputError(f"its 'monitor' is not '{cls.__name__}'")
            if content.keys() | {"monitor"} != names:
                raise InputError("a field is missing, or there is one too many")
            return msgspec.convert(content, cls)
        except (msgspec.MsgspecError, UnicodeDecodeError, InputError) as error:
            raise InputError(f"not the state of an {cls.__name__} ({error}): write one with to_json") from None
