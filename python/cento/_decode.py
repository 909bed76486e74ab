"""JSON as the dataclasses of `cento.types`: what they do not name is left out, what is not there is `None`."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
Decoder = Callable[[Any], Any]


def decode(kind: type[T], value: Any) -> T:
    """A value of JSON as a type."""
    made: T = _decoder(typing.cast(Any, kind))(value)
    return made


def _as_it_is(value: Any) -> Any:
    return value


@functools.cache
def _decoder(kind: Any) -> Decoder:
    if dataclasses.is_dataclass(kind):
        return _fields_of(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        item = _decoder(arguments[0])
        return _as_it_is if item is _as_it_is else lambda values: [item(value) for value in values]
    if origin is tuple:
        items = [_decoder(argument) for argument in arguments]
        return lambda values: tuple(item(value) for item, value in zip(items, values))
    if origin is dict:
        item = _decoder(arguments[1])
        return _as_it_is if item is _as_it_is else lambda values: {key: item(value) for key, value in values.items()}
    if origin in (typing.Union, types.UnionType):
        (one, *others) = [_decoder(argument) for argument in arguments if argument is not types.NoneType]
        if one is _as_it_is or others:  # the types have no union of two objects
            return _as_it_is
        return lambda value: None if value is None else one(value)
    return _as_it_is


def _fields_of(kind: Any) -> Decoder:
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    decoders = [(field.name, field.name.rstrip("_"), _decoder(hints[field.name])) for field in fields if field.init]

    def object_of(value: dict[str, Any]) -> Any:
        return kind(**{name: decoder(value[key]) if key in value else None for name, key, decoder in decoders})

    return object_of
