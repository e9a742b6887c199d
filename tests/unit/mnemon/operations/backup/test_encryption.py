"""Keys and passphrases: those that decrypt a file of a backup, and those with which a further run goes on."""

from base64 import b64decode
from pathlib import Path

import pyrage
import pytest

from mnemon.operations.backup.encryption import BackupCipher, KeyUnusable, choose_cipher

FILE = b64decode(
    "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNjcnlwdCB2c0ZDVW4zM1FkdThYTXdKRHJPVmZnIDQKSlFJS3JnZ3pRWk9BY3YvdzdOT1dB"
    "K0VGTWVTVzJldEVENkNlODQ4Vk9OWQotLS0gYW04SVdNL1kwVHRtbVdsbUJvTkFna2hya1FtUk94Q2NmN2tWYldIQ2NSdwryiCZEtUpQ"
    "50Sw3ivr+qM7zZwzHn2NlVkBqsIM6v46AWXyx2aSZlY="
)
"""`content`, encrypted with the passphrase `one`. The usual work factor, not 2**4, would take a second."""


def with_passphrase(folder: Path, passphrase: str) -> BackupCipher:
    file = folder / f"{passphrase}.txt"
    file.write_text(f"{passphrase}\n")
    return choose_cipher(passphrase_file=file)


def with_new_recipient() -> BackupCipher:
    return choose_cipher([str(pyrage.x25519.Identity.generate().to_public())])


def test_the_passphrase_of_a_file_decrypts_it_and_may_continue(tmp_path: Path) -> None:
    cipher = with_passphrase(tmp_path, "one")
    assert cipher.decrypt(FILE, "a file") == b"content"
    cipher.require_same_key(FILE, "the folder")


def test_another_passphrase_is_refused(tmp_path: Path) -> None:
    cipher = with_passphrase(tmp_path, "other")
    with pytest.raises(KeyUnusable, match="a file cannot be decrypted with this passphrase"):
        cipher.decrypt(FILE, "a file")
    with pytest.raises(KeyUnusable, match=r"the folder was not .* give the passphrase of the backup, or"):
        cipher.require_same_key(FILE, "the folder")


def test_recipients_do_not_continue_a_passphrase_nor_a_passphrase_recipients(tmp_path: Path) -> None:
    with pytest.raises(KeyUnusable, match="give --passphrase-file in place of --recipient"):
        with_new_recipient().require_same_key(FILE, "the folder")
    with pytest.raises(KeyUnusable, match="or --recipient if it is encrypted for recipients"):
        with_passphrase(tmp_path, "one").require_same_key(
            with_new_recipient().encrypt(b"content"), "the folder"
        )
    with_new_recipient().require_same_key(with_new_recipient().encrypt(b"content"), "the folder")
