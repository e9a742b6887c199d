"""Encryption of the files of a backup, in the format of age: by recipients' keys or by a passphrase."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from mnemon.operations.backup.manifest import BackupUnusable

AGE: Final = "age"

_HEADER_BYTES: Final = 64
"""Number of bytes, from the start of a file, within which the stanza of a passphrase begins."""

_PASSPHRASE_STANZA: Final = b"\n-> scrypt "
"""Part of the header of a file that is encrypted with a passphrase; the line before names the format."""


class KeyUnusable(Exception):
    """A key or a passphrase cannot be used; the message names the next step."""


class BackupCipher(Protocol):
    """Cipher of the files of a backup.

    `name` is written to the manifest (None for plain files), and `suffix` is the end of the names of files.
    `require_same_key` raises `KeyUnusable` if a file of a backup has another passphrase than this cipher, or
    only one of the two has a passphrase. It does not compare recipients. `location` names the backup in the
    error.
    """

    name: str | None
    suffix: str

    def encrypt(self, body: bytes) -> bytes: ...

    def decrypt(self, body: bytes, name: str) -> bytes: ...

    def require_same_key(self, body: bytes, location: str) -> None: ...


class NoCipher:
    """Cipher of a backup without encryption: leaves files as they are."""

    name: str | None = None
    suffix = ""

    def encrypt(self, body: bytes) -> bytes:
        return body

    def decrypt(self, body: bytes, name: str) -> bytes:
        return body

    def require_same_key(self, body: bytes, location: str) -> None:
        pass


class KeyCipher:
    """Cipher with age keys.

    It encrypts for the public keys of recipients, and decrypts with an identity, the secret key of one of
    them. A backup needs no identity, and a restore needs no recipients.

    Raises:
        KeyUnusable: a key is not an age key, or the file with the identity cannot be read.
        ModuleNotFoundError: pyrage is not installed.
    """

    name: str | None = AGE
    suffix = ".age"

    def __init__(self, recipients: Sequence[str], identity: Path | None) -> None:
        import pyrage

        try:
            self._recipients = [pyrage.x25519.Recipient.from_str(each) for each in recipients]
        except pyrage.RecipientError as error:
            raise KeyUnusable(
                f"a recipient cannot be used: {error}. Give a public age key, which begins with age1"
            ) from error
        try:
            self._identities = [
                pyrage.x25519.Identity.from_str(line.strip())
                for line in (_read_key_file(identity).splitlines() if identity else [])
                if line.strip() and not line.startswith("#")
            ]
        except pyrage.IdentityError as error:
            raise KeyUnusable(
                f"{identity} cannot be used: {error}. Give --identity a file that `age-keygen -o` wrote"
            ) from error

    def encrypt(self, body: bytes) -> bytes:
        import pyrage

        encrypted: bytes = pyrage.encrypt(body, self._recipients)
        return encrypted

    def decrypt(self, body: bytes, name: str) -> bytes:
        import pyrage

        try:
            plain: bytes = pyrage.decrypt(body, self._identities)
        except pyrage.DecryptError as error:
            raise KeyUnusable(
                f"{name} cannot be decrypted with this identity: {error}. Give the identity of one of the "
                "backup's recipients, or --passphrase-file if the backup has a passphrase"
            ) from error
        return plain

    def require_same_key(self, body: bytes, location: str) -> None:
        if _PASSPHRASE_STANZA in body[:_HEADER_BYTES]:
            raise KeyUnusable(
                f"the backup in {location} has a passphrase: give --passphrase-file in place of --recipient, "
                "or name another destination"
            )


class PassphraseCipher:
    """Cipher with the passphrase in a file.

    Raises:
        KeyUnusable: the file cannot be read, or is empty.
    """

    name: str | None = AGE
    suffix = ".age"

    def __init__(self, path: Path) -> None:
        self._passphrase = _read_key_file(path).strip()
        if not self._passphrase:
            raise KeyUnusable(f"{path} has no passphrase: write a passphrase into the file")

    def encrypt(self, body: bytes) -> bytes:
        import pyrage

        encrypted: bytes = pyrage.passphrase.encrypt(body, self._passphrase)
        return encrypted

    def decrypt(self, body: bytes, name: str) -> bytes:
        import pyrage

        try:
            plain: bytes = pyrage.passphrase.decrypt(body, self._passphrase)
        except pyrage.DecryptError as error:
            raise KeyUnusable(
                f"{name} cannot be decrypted with this passphrase: {error}. Give the passphrase of the "
                "backup, or --identity if the backup is encrypted for recipients"
            ) from error
        return plain

    def require_same_key(self, body: bytes, location: str) -> None:
        import pyrage

        try:
            pyrage.passphrase.decrypt(body, self._passphrase)
        except pyrage.DecryptError as error:
            raise KeyUnusable(
                f"the backup in {location} was not encrypted with this passphrase: give the passphrase of "
                "the backup, or --recipient if it is encrypted for recipients, or name another destination"
            ) from error


def choose_cipher(
    recipients: Sequence[str] = (), passphrase_file: Path | None = None, identity: Path | None = None
) -> BackupCipher:
    """Return the cipher that the options name; without options, files stay plain.

    Raises:
        KeyUnusable: the options contradict each other, or a key cannot be used.
        ModuleNotFoundError: keys are given, and pyrage is not installed. With a passphrase, not this function
            but the encryption or decryption of the first file raises the error.
    """
    if passphrase_file and (recipients or identity):
        raise KeyUnusable(
            "a passphrase and age keys are both given: leave out --passphrase-file, or --recipient and "
            "--identity"
        )
    if passphrase_file:
        return PassphraseCipher(passphrase_file)
    return KeyCipher(recipients, identity) if recipients or identity else NoCipher()


def require_same_encryption(cipher: BackupCipher, encryption: str | None, location: str) -> None:
    """Check that a cipher encrypts if the files of a backup are encrypted, and only then.

    `encryption` is the manifest's field of this name, which is None for plain files. `location` names the
    backup in errors.

    Raises:
        BackupUnusable: the backup is encrypted and no key is given, or it is plain and a key is given.
    """
    if encryption == cipher.name:
        return
    if encryption:
        raise BackupUnusable(
            f"the backup in {location} is encrypted: give --passphrase-file, or an age key (--recipient "
            "for a backup, --identity for a restore)"
        )
    raise BackupUnusable(
        f"the backup in {location} is not encrypted: leave out keys and passphrase, or name another backup"
    )


def _read_key_file(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise KeyUnusable(
            f"{path} cannot be read: {reason}. Make it readable, or name another file"
        ) from error
