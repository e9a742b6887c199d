"""Object stores in a folder and in a bucket, which behave alike."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mnemon_infra.storage.object_store import (
    ObjectMissing,
    ObjectStore,
    StoreUnavailable,
    open_object_store,
)
from tests.support.servers.bucket_server import BUCKET, serve_bucket


@pytest.fixture(scope="module")
def variables() -> Iterator[dict[str, str]]:
    with serve_bucket() as variables:
        yield variables


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    if request.param == "folder":
        return open_object_store(tmp_path / "store")
    for name, value in request.getfixturevalue("variables").items():
        monkeypatch.setenv(name, value)
    return open_object_store(f"s3://{BUCKET}/{tmp_path.name}")


async def test_a_file_is_read_as_it_was_written_last(store: ObjectStore) -> None:
    await store.write("a.json", b"1")
    await store.write("a.json", b"\x00two")
    assert await store.read("a.json") == b"\x00two"


async def test_files_of_a_folder_are_listed(store: ObjectStore) -> None:
    assert await store.list_names("parts") == []
    await store.write("parts/b", b"")
    await store.write("parts/a", b"1")
    await store.write("other/c", b"1")
    assert await store.list_names("parts") == ["parts/a", "parts/b"]


async def test_subfolder_is_not_listed_as_a_file(tmp_path: Path) -> None:
    store = open_object_store(tmp_path)
    await store.write("parts/a", b"1")
    (tmp_path / "parts" / "@eaDir").mkdir()  # file servers add such folders to each folder
    assert await store.list_names("parts") == ["parts/a"]


async def test_a_file_can_be_removed_twice(store: ObjectStore) -> None:
    await store.write("a", b"1")
    await store.delete("a")
    await store.delete("a")
    with pytest.raises(ObjectMissing):
        await store.read("a")


async def test_a_missing_file_is_reported(store: ObjectStore) -> None:
    with pytest.raises(ObjectMissing):
        await store.read("parts/none")


async def test_a_missing_bucket_is_not_an_empty_one(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    absent = open_object_store("s3://nothing-here/x")
    for attempt in absent.read("a"), absent.write("a", b""), absent.list_names("a"):
        with pytest.raises(StoreUnavailable, match=r"s3://nothing-here/x cannot be used: .*AWS_ENDPOINT_URL"):
            await attempt


async def test_only_this_account_reads_a_folder(tmp_path: Path) -> None:
    store = open_object_store(tmp_path / "store")
    await store.write("parts/a", b"1")
    modes = [each.stat().st_mode & 0o777 for each in sorted((tmp_path / "store").rglob("*"))]
    assert modes == [0o700, 0o600]


async def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    store = open_object_store(tmp_path / "store")
    with pytest.raises(StoreUnavailable, match=f"{tmp_path / 'store'} cannot be used"):
        await store.write("a", b"")


@pytest.mark.parametrize("location", ["gs://bucket/x", "s3://", "http://host/x"])
def test_another_address_is_refused(location: str) -> None:
    with pytest.raises(StoreUnavailable, match="name a folder, or a bucket"):
        open_object_store(location)
