"""Keeps uploaded files that are too large for memory until a view has read them."""

from tempfile import TemporaryFile
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler


class UploadSpool(FileUploadHandler):
    """Uses unnamed files, which disappear with the process. Django's temporary files stay after a crash."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        described = self.content_type, 0, self.charset, self.content_type_extra
        self.file: UploadedFile[bytes] = UploadedFile(TemporaryFile(), self.file_name, *described)  # noqa: SIM115

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self.file.write(raw_data)

    def file_complete(self, file_size: int) -> "UploadedFile[bytes]":
        self.file.seek(0)
        self.file.size = file_size
        return self.file

    def upload_interrupted(self) -> None:
        if hasattr(self, "file"):
            self.file.close()
