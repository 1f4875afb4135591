"""Reads a Mach-O program and its code signature by their formats alone, apart from whatever wrote them.

Numbers and layouts: ``mach-o/loader.h`` and ``kern/cs_blobs.h`` of Apple's xnu.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

MAGIC_64 = 0xFEEDFACF
CPU_ARM64, EXECUTE, PLATFORM_MACOS = 0x0100000C, 2, 1
UUID, CODE_SIGNATURE, BUILD_VERSION = 0x1B, 0x1D, 0x32
SUPER_BLOB, CODE_DIRECTORY = 0xFADE0CC0, 0xFADE0C02
ADHOC, RUNTIME, LINKER_SIGNED = 0x2, 0x10000, 0x20000
SHA256 = 2
INFO_SLOT, RESOURCES_SLOT, ENTITLEMENTS_SLOT = 1, 3, 5


@dataclass(frozen=True)
class CodeDirectory:
    """What is signed."""

    identifier: str
    flags: int
    hash_type: int
    special: dict[int, bytes]
    """Hashes of what lies beside the code, by slot; those of empty slots are left out."""
    wrong_pages: list[int]
    """Pages of the program whose hash is another."""


class MachO:
    """One program for one processor."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        magic, self.cpu, _, self.kind, count, _, _, _ = struct.unpack("<8I", content[:32])
        assert magic == MAGIC_64
        self.commands: dict[int, bytes] = {}
        offset = 32
        for _ in range(count):
            command, size = struct.unpack("<2I", content[offset : offset + 8])
            self.commands[command] = content[offset : offset + size]
            offset += size

    @property
    def build_version(self) -> tuple[int, tuple[int, int]]:
        """The platform, and the oldest version of it."""
        platform, oldest = struct.unpack("<2I", self.commands[BUILD_VERSION][8:16])
        return platform, (oldest >> 16, oldest >> 8 & 0xFF)

    @property
    def code_directory(self) -> CodeDirectory:
        """Of its signature, with the hash of every page computed again."""
        offset, size = struct.unpack("<2I", self.commands[CODE_SIGNATURE][8:16])
        signature = self.content[offset : offset + size]
        magic, _, count = struct.unpack(">3I", signature[:12])
        assert magic == SUPER_BLOB
        places = [struct.unpack(">2I", signature[12 + 8 * index : 20 + 8 * index]) for index in range(count)]
        found = [_code_directory(signature[at:], self.content[:offset]) for slot, at in places if slot == 0]
        (directory,) = found
        return directory


def _code_directory(blob: bytes, code: bytes) -> CodeDirectory:
    magic, _length, _version, flags, hash_at, name_at, special_count, page_count, limit = struct.unpack(
        ">9I", blob[:36]
    )
    hash_size, hash_type, _platform, page_bits = struct.unpack(">4B", blob[36:40])
    assert magic == CODE_DIRECTORY
    assert limit == len(code)  # everything before the signature
    name = blob[name_at : blob.index(b"\0", name_at)].decode()

    def stored(index: int) -> bytes:
        return blob[hash_at + index * hash_size : hash_at + (index + 1) * hash_size]

    page = 1 << page_bits
    wrong = [
        index
        for index in range(page_count)
        if hashlib.sha256(code[index * page : (index + 1) * page]).digest() != stored(index)
    ]
    assert page_count == -(-limit // page)
    special = {slot: stored(-slot) for slot in range(1, special_count + 1) if any(stored(-slot))}
    return CodeDirectory(name, flags, hash_type, special, wrong)
