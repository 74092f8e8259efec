"""What is proved: certificates of the four papers' theorems."""

from .base import Assumption as Assumption
from .base import Certificate as Certificate

__all__ = ["Assumption", "Certificate"]
