"""Files in requests to the API."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any, cast

from django.core.files.uploadedfile import UploadedFile
from django.utils.datastructures import MultiValueDict
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.request import Request

from memoryconsole.endpoints import check_body
from memoryconsole.errors import Invalid, Unreadable


class UnreadableForm(Unreadable):
    detail = "The form cannot be read. Send it as multipart/form-data, with the boundary in the Content-Type header."


class FormParser(MultiPartParser):
    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            return super().parse(stream, media_type, parser_context)
        except ParseError:
            raise UnreadableForm from None


class RawParser(BaseParser):
    """The body is the file. It is passed on as a stream, not read into memory."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return {"file": stream}


FILE_PARSERS = [FormParser, RawParser]


def file_in(request: Request) -> tuple[Any, str]:
    """The file that was sent, as a stream, and its name: the field `file` of a form, or the body itself."""
    check_body(request)
    sent = cast(Mapping[str, Any], request.data)
    names = set(sent)
    for name in names - {"file"}:
        raise Invalid({name: ["Unknown field."]})
    if isinstance(sent, MultiValueDict) and len(sent.getlist("file")) > 1:
        raise Invalid({"file": ["Send this once."]})
    file = sent.get("file")
    if isinstance(file, UploadedFile):
        return file, file.name or "file"
    if isinstance(file, str) or (file is None and names):
        raise Invalid({"file": ["Send a file."]})
    if file is None and "multipart" in str(request.content_type):
        raise Invalid({"file": ["This field is required."]})
    return (BytesIO() if file is None else file), "file"
