"""Detecting a file's content type by its first bytes. Only common types, and none that a browser would run."""

UNKNOWN = "application/octet-stream"
TEXT = "text/plain; charset=utf-8"
BYTES = 4096

# (offset, bytes at that offset, content type)
SIGNATURES = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1a\x45\xdf\xa3", "video/webm"),
    (8, b"WAVE", "audio/wav"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
)

TYPES = sorted({UNKNOWN, TEXT, *(type for _, _, type in SIGNATURES)})


def type_of(start: bytes) -> str:
    for offset, signature, type in SIGNATURES:
        # WEBP and WAVE files are RIFF containers.
        if start[offset : offset + len(signature)] == signature and (offset != 8 or start[:4] == b"RIFF"):
            return type
    return TEXT if _is_text(start[:BYTES]) else UNKNOWN


def _is_text(start: bytes) -> bool:
    """HTML, SVG and scripts count as text too: served as text/plain, no browser runs them."""
    if not start or any(byte < 32 and byte not in b"\t\n\r\f" for byte in start):
        return False
    try:
        start.decode()
    except UnicodeDecodeError as error:
        # The last character may be cut in two.
        return len(start) == BYTES and error.start >= BYTES - 3
    return True
