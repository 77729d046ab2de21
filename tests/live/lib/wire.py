"""Protobuf wire format: a message as a list of (field number, wire type, value)."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class WireError(Exception):
    pass


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise WireError(f"a varint is cut at {at}")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """Yields (number, wire type, value); value is an int, or bytes for BYTES. A cut message raises WireError."""
    at, size = 0, len(data)
    while at < size:
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise WireError(f"field number 0 at {at}")
        if kind == VARINT:
            value, at = varint(data, at)
        elif kind == BYTES:
            length, at = varint(data, at)
            value = data[at : at + length]
            at += length
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
            value = int.from_bytes(data[at : at + length], "little")
            at += length
        else:
            raise WireError(f"wire type {kind} at {at}")
        if at > size:
            raise WireError("the message is cut")
        yield number, kind, value


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def ints(kind, value):
    """A repeated integer field, packed or not, as a list."""
    if kind != BYTES:
        return [value]
    out, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        out.append(number)
    return out
