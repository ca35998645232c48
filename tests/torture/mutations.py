"""Damage to stored files, drawn from a seed: single bytes, and values inside JSON.

Reading a damaged file must end in one error of fairpass that names it, or in a result; never in a traceback or a hang.
"""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import torch

from fairpass.documents import CHECKSUM, signed
from fairpass.training.tensors import read_tensors, write_tensors

HUGE = 10**9

# What stands in for a value, or around it. Deep nesting is last: JSON of it is made by hand.
_WRONG: tuple[Callable[[Any], Any], ...] = (
    lambda value: None,
    lambda value: "words",
    lambda value: "",
    lambda value: -1,
    lambda value: 0,
    lambda value: HUGE,
    lambda value: 10**30,
    lambda value: 1e308,
    lambda value: 0.5,
    lambda value: True,
    lambda value: [],
    lambda value: {},
    lambda value: [value],
    lambda value: {"value": value},
    lambda value: [value] * 3,
    lambda value: "x" * 10_000,
    lambda value: "\ud800\x00\x1b[31m",
    lambda value: nested(50),
    lambda value: nested(500),
)


# What may be in the place of a JSON file, given its content.
_ODD: tuple[Callable[[bytes], bytes], ...] = (
    lambda content: b"",
    lambda content: b" \n",
    lambda content: b"null",
    lambda content: b"\xef\xbb\xbf" + content,
    lambda content: content.decode().encode("utf-16"),
    lambda content: content + content,
    lambda content: b"{" + content.strip()[1:-1] + b"," + content.strip()[1:],  # every entry twice
    lambda content: b'{"surprise": ' + b"1" * 6000 + b"," + content.strip()[1:],
    lambda content: b'{"surprise": 1e999,' + content.strip()[1:],
    lambda content: b'{"surprise": "\\ud800",' + content.strip()[1:],
)


def nested(depth: int) -> Any:
    """Return lists within lists."""
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def change_bytes(content: bytes, random: Random) -> bytes:
    """Return content with a flipped byte, a piece cut out, cut off, repeated, or zeros in place of one."""
    place = random.randrange(max(1, len(content)))
    length = random.choice((1, 8, 100, 4096))
    before, piece, after = content[:place], content[place : place + length], content[place + length :]
    kind = random.randrange(7)
    if kind == 0:
        return before + bytes([content[place] ^ random.randrange(1, 256)]) + content[place + 1 :]
    if kind == 1:
        return before + after
    if kind == 2:
        return before
    if kind == 3:
        return before + piece + piece + after
    if kind == 4:
        return before + bytes(len(piece)) + after
    if kind == 5:
        return before + random.randbytes(len(piece)) + after
    return content + random.randbytes(length)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def change_structure(document: Any, random: Random) -> Any:
    """Return JSON with one value of another type or size, one key missing, or one key too many."""
    changed = copy.deepcopy(document)
    # By depth first, because most values are deep inside: every level gets its share.
    found = list(places(changed))
    depth = random.choice(sorted({len(path) for path in found}))
    *parents, last = random.choice([path for path in found if len(path) == depth])
    inside = changed
    for key in parents:
        inside = inside[key]
    kind = random.randrange(8)
    if kind == 0:
        del inside[last]
    elif kind == 1 and isinstance(inside, dict):
        inside["surprise"] = inside[last]
    elif kind == 2 and isinstance(inside, dict):
        inside[str(last) + "s"] = inside.pop(last)
    else:
        inside[last] = random.choice(_WRONG)(inside[last])
    return changed


def mutated_document(path: Path, random: Random) -> str:
    """Damage a JSON file; return how. In half of the cases its checksum is right, as after an edit with care."""
    kind = random.choice(("bytes", "structure", "signed", "deep", "odd", "directory"))
    content = path.read_bytes()
    if kind == "bytes":
        path.write_bytes(change_bytes(content, random))
    elif kind == "odd":
        path.write_bytes(random.choice(_ODD)(content))
    elif kind == "directory":
        path.unlink()
        path.mkdir()
    elif kind == "deep":
        path.write_text('{"kind": ' + "[" * 100_000 + "]" * 100_000 + "}")
    else:
        document = json.loads(content)
        document.pop(CHECKSUM, None)
        changed = change_structure(document, random)
        path.write_text(json.dumps(signed(changed) if kind == "signed" else changed))
    return kind


def mutated_tensors(path: Path, kind_of_file: str, random: Random) -> str:
    """Damage a file of tensors; return how. A changed header, or tensors, get a digest that is right."""
    kind = random.choice(("bytes", "header", "header", "tensors"))
    if kind == "bytes":
        path.write_bytes(change_bytes(path.read_bytes(), random))
        return kind
    tensors, header = read_tensors(path, kind_of_file)
    if kind == "header":
        header = change_structure(header, random)
    else:
        name = random.choice(sorted(tensors))
        value = tensors.pop(name)
        change = random.randrange(9)
        if change == 0:
            tensors[name + "s"] = value
        elif change == 1:
            tensors[name] = value.flatten()[: value.numel() // 2]
        elif change == 2:
            tensors[name] = value[None]
        elif change == 3:
            tensors[name] = value.double() if value.is_floating_point() else value.float()
        elif change == 4:
            tensors[name] = value.float() * float("nan")
        elif change == 5:
            tensors[name] = value.long()
        elif change == 6:
            tensors[name] = torch.full_like(value.long(), 2**62)
        elif change == 7:
            tensors[name] = value.flatten()[:0]
    write_tensors(path, kind_of_file, tensors, header)
    return kind
