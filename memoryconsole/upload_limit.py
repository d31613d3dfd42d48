"""Refuses forms that are larger than any file we accept, before they fill the disk."""

from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadhandler import FileUploadHandler

from memoryconsole.errors import TooLarge

# Room for the other fields of a form and the separators.
BESIDE_THE_FILE = 1024 * 1024


class UploadLimit(FileUploadHandler):
    """The first upload handler: it checks the length and passes everything on."""

    def handle_raw_input(
        self, input_data: Any, META: Any, content_length: int, boundary: Any, encoding: Any = None
    ) -> None:
        if content_length > settings.IMPORT_MAX_BYTES + BESIDE_THE_FILE:
            problem = TooLarge("A file", settings.IMPORT_MAX_BYTES)
            # As an error of Django's, because it is raised while Django reads the form, before any view.
            raise RequestDataTooBig(problem.detail) from problem

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        return raw_data

    def file_complete(self, file_size: int) -> None:
        return None
