"""What a service bears, and what it says to those who ask for more. Knows numbers and errors; no models, no HTTP library."""

from __future__ import annotations

import math
from dataclasses import dataclass

from eyeline.errors import UserError


class Refused(UserError):
    """A request that is not answered, with the status that HTTP has for the reason."""

    def __init__(self, status: int, what: str, where: str = "", hint: str = "", retry_after: float = 0.0) -> None:
        """
        Args:
            retry_after: seconds after which it may be tried again; 0 where that would not help.
        """
        self.status, self.retry_after = status, math.ceil(retry_after)
        super().__init__(what, where, hint)


@dataclass(frozen=True)
class Limits:
    """The most of everything."""

    body: int = 1 << 20  # bytes of a request
    items: int = 1000  # inputs of a request
    characters: int = 5000  # of an input
    tokens: int = 5000  # that a request may ask an output to have
    beam: int = 32  # hypotheses of an input, or samples drawn for it
    n_best: int = 32  # outputs of an input
    queue: int = 2000  # inputs that wait for a model
    seconds: float = 60.0  # that a request may take
    rate: int = 0  # requests a minute and client; 0: any number

    def check(self, name: str, value: int, most: int) -> None:
        """Raises Refused where a request asks for more."""
        if value > most:
            raise Refused(400, f"{value:,} is more than the service allows", name, f"at most {most:,}")
