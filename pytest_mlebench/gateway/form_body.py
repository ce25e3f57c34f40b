"""A call whose body is a form (``multipart/form-data``): sound and pictures come so.

Only short fields are read. A form that two readers could read in two ways is refused: what we take
for the model must be what the upstream takes for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_mlebench.gateway.refusal import CallRefusal

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

KIND = "multipart/form-data"
MAX_FIELDS = 200
MAX_FIELD_BYTES = 4096  # of what is read; the rest of a field is of no interest to us

_NUMBERS = ("n",)


def form_fields(content_type: str, body: bytes) -> dict[str, object]:
    """Return the short fields of a form by their names, or refuse it."""
    # late on purpose: few agents send forms
    from python_multipart import MultipartParser
    from python_multipart.exceptions import FormParserError
    from python_multipart.multipart import parse_options_header

    boundary = parse_options_header(content_type)[1].get(b"boundary", b"")
    if not boundary or content_type.lower().count("boundary=") != 1:
        raise _unclear("it does not say once what its boundary is")
    if not body.startswith(b"--" + boundary + b"\r\n"):
        raise _unclear("it does not begin with its boundary")
    form = _Form()
    try:
        MultipartParser(boundary, form.callbacks()).write(body)
    except FormParserError:
        raise _unclear("it is not a valid form") from None
    if not form.is_whole:
        raise _unclear("it has no end")
    return {name: _value(name, bytes(value)) for name, value in form.fields.items()}


class _Form:
    """The parts of a form as a parser finds them."""

    def __init__(self) -> None:
        self.fields: dict[str, bytearray] = {}
        self.is_whole = False
        self._seen: set[str] = set()
        self._header = self._content = b""
        self._disposition: bytes | None = None
        self._field: bytearray | None = None

    def callbacks(self) -> MultipartCallbacks:
        return {
            "on_part_begin": self._begin_part,
            "on_header_begin": self._begin_header,
            "on_header_field": self._add_to_header,
            "on_header_value": self._add_to_content,
            "on_header_end": self._end_header,
            "on_headers_finished": self._name_part,
            "on_part_data": self._add,
            "on_end": self._end,
        }

    def _begin_part(self) -> None:
        if len(self._seen) >= MAX_FIELDS:
            raise _unclear(f"it has more than {MAX_FIELDS} fields")
        self._disposition = self._field = None

    def _begin_header(self) -> None:
        self._header = self._content = b""

    # the parser itself bounds headers
    def _add_to_header(self, data: bytes, start: int, end: int) -> None:
        self._header = self._header + data[start:end]

    def _add_to_content(self, data: bytes, start: int, end: int) -> None:
        self._content = self._content + data[start:end]

    def _end_header(self) -> None:
        if self._header.lower() == b"content-disposition":
            if self._disposition is not None:
                raise _unclear("a field has two names")
            self._disposition = self._content

    def _name_part(self) -> None:
        name, is_file = _named(self._disposition or b"")
        if name in self._seen and not (is_file or name.endswith("[]")):
            raise _unclear(f"it has the field {name[:50]!r} twice")
        self._seen.add(name)
        if not is_file:
            self._field = self.fields.setdefault(name, bytearray())
        elif name == "model":
            raise _unclear("its model is a file")

    def _add(self, data: bytes, start: int, end: int) -> None:
        if self._field is not None and len(self._field) <= MAX_FIELD_BYTES:
            self._field += data[start : min(end, start + MAX_FIELD_BYTES + 1)]

    def _end(self) -> None:
        self.is_whole = True


def _named(disposition: bytes) -> tuple[str, bool]:
    """Return the name of a part, and whether it is a file's."""
    from python_multipart.multipart import parse_options_header

    kind, options = parse_options_header(disposition)
    lowered = disposition.lower()
    names = lowered.count(b"name=") - lowered.count(b"filename=")
    if kind != b"form-data" or b"name" not in options or names != 1 or b"name*" in lowered:
        raise _unclear("a field does not say once what its name is")
    try:
        name = options[b"name"].decode("ascii")
    except UnicodeDecodeError:
        raise _unclear("the name of a field is not plain") from None
    return name, b"filename" in options or b"filename" in lowered


def _value(name: str, value: bytes) -> object:
    text = value.decode(errors="replace")
    if name in _NUMBERS and text.strip().isdecimal() and len(text) < MAX_FIELD_BYTES:
        return int(text)
    return text == "true" if name == "stream" else text


def _unclear(reason: str) -> CallRefusal:
    return CallRefusal("bad_request", f"the body is not understood: {reason}")
