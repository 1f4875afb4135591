"""Pairing by a short code: SPAKE2 (RFC 9382's ancestor by Abdalla and Pointcheval) bound to both certificates.

The *host* shows a code on its screen, the *guest* is where a person types it. Each sends one group element; whoever
does not know the code learns from them no more than whether one guess was right, and cannot test others off line. The
ids under which both compute the key are the fingerprints of the two certificates, so a man in the middle, who must show
certificates of his own, ends up with another key than both even when the code is right. Both then prove the key, the
host first: that is why a guess counts when it begins.

Pure: nothing here reads a clock, a socket or a file.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field

from spake2 import SPAKE2_A, SPAKE2_B, SPAKEError
from spake2.ed25519_basic import NotOnCurve

CODE_DIGITS = 6
CODE_SECONDS = 120.0
TRIES = 3
MESSAGE_BYTES = 33
"""Which side, and an element of the group of Ed25519."""
PROOF_BYTES = 32
EXCHANGE_SECONDS = 10.0
"""From a guest's first word to its second; meanwhile nobody else is served."""
FIRST_LOCK_SECONDS, LONGEST_LOCK_SECONDS = 60.0, 3600.0

_PROTOCOL = b"pomona pairing 1"


class WrongCode(Exception):
    """The other end does not know the code, or is not the machine that it seems to be."""


class NoCode(Exception):
    """No code is shown, or it has had its tries."""


class Busy(Exception):
    """Another guest is being served."""


class Locked(Exception):
    """Too many wrong codes."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"locked for {seconds:.0f} s")
        self.seconds = seconds


def is_code(text: str) -> bool:
    """Whether ``text`` is six digits."""
    return len(text) == CODE_DIGITS and text.isascii() and text.isdigit()


class Guest:
    """The end where the code is typed. Good for one exchange. Computes for some tens of milliseconds."""

    def __init__(self, code: str, own_id: str, host_id: str) -> None:
        self._ids = (own_id, host_id)
        self._spake = SPAKE2_A(code.encode(), idA=own_id.encode(), idB=host_id.encode())
        self.message: bytes = self._spake.start()
        """What to send first."""

    def prove(self, host_message: bytes, host_proof: bytes) -> bytes:
        """Check the host's answer; returns our own proof. Raises :class:`WrongCode`."""
        key = _shared_key(self._spake, host_message)
        transcript = _transcript(*self._ids, self.message, host_message)
        if not hmac.compare_digest(host_proof, _proof(key, b"host", transcript)):
            raise WrongCode
        return _proof(key, b"guest", transcript)


class HostExchange:
    """The end that shows the code, for one guest. Computes for some tens of milliseconds when it is made.

    Raises :class:`WrongCode` for a message that is none.
    """

    def __init__(self, code: str, own_id: str, guest_id: str, guest_message: bytes) -> None:
        spake = SPAKE2_B(code.encode(), idA=guest_id.encode(), idB=own_id.encode())
        self.message: bytes = spake.start()
        key = _shared_key(spake, guest_message)
        transcript = _transcript(guest_id, own_id, guest_message, self.message)
        self.proof = _proof(key, b"host", transcript)
        self._expected = _proof(key, b"guest", transcript)

    def accepts(self, guest_proof: bytes) -> bool:
        """Whether the guest knows the code and sees the same two certificates."""
        return hmac.compare_digest(guest_proof, self._expected)


@dataclass(slots=True)
class CodeDesk:
    """The code that this machine shows, and who may try it. The caller brings the time, in seconds that never go back.

    Without a code nothing is accepted. A code ends by its age, by its third try, by a success, or by the owner's word.
    Three tries without a success lock the desk: 60 s, then twice as long each time, to an hour.
    """

    code: str | None = None
    _until: float = 0.0
    _tries: int = 0
    _busy_until: float = 0.0
    _locked_until: float = 0.0
    _locks: int = field(default=0)

    def show(self, now: float) -> str:
        """Begin to show a new code. Raises :class:`Locked`."""
        if now < self._locked_until:
            raise Locked(self._locked_until - now)
        self.code = f"{secrets.randbelow(10**CODE_DIGITS):0{CODE_DIGITS}d}"
        self._until = now + CODE_SECONDS
        self._tries = 0
        self._busy_until = 0.0
        return self.code

    def hide(self) -> None:
        """Show none."""
        self.code = None

    def seconds_left(self, now: float) -> float:
        """How long the code is still good for; 0 without one."""
        return max(0.0, self._until - now) if self.code is not None else 0.0

    def take_try(self, now: float) -> str:
        """Count a guest's try and return the code to compute with. Raises :class:`NoCode` and :class:`Busy`.

        Whoever has used up the last try may still finish with it.
        """
        if self.seconds_left(now) <= 0:
            raise NoCode
        if self.busy(now):
            raise Busy
        code = self.code
        assert code is not None  # there are seconds left
        self._tries += 1
        self._busy_until = now + EXCHANGE_SECONDS
        if self._tries >= TRIES:
            self.code = None
            self._locked_until = now + min(LONGEST_LOCK_SECONDS, FIRST_LOCK_SECONDS * 2**self._locks)
            self._locks += 1
        return code

    def busy(self, now: float) -> bool:
        """Whether the guest whose try was taken may still finish."""
        return now < self._busy_until

    def end_try(self) -> None:
        """The guest was wrong: the next one may come."""
        self._busy_until = 0.0

    def succeed(self) -> None:
        """The guest was right: the code is used up, and so is every lock."""
        self.code = None
        self._busy_until = self._locked_until = 0.0
        self._locks = 0


def _shared_key(spake: SPAKE2_A | SPAKE2_B, message: bytes) -> bytes:
    if len(message) != MESSAGE_BYTES:
        raise WrongCode
    try:
        key: bytes = spake.finish(message)
    except (SPAKEError, ValueError, NotOnCurve) as error:  # what is no element of the group ends in one of these
        raise WrongCode from error
    return key


def _transcript(guest_id: str, host_id: str, guest_message: bytes, host_message: bytes) -> bytes:
    parts = (_PROTOCOL, guest_id.encode(), host_id.encode(), guest_message, host_message)
    return hashlib.sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()


def _proof(key: bytes, side: bytes, transcript: bytes) -> bytes:
    return hmac.digest(key, _PROTOCOL + b" " + side + transcript, hashlib.sha256)
