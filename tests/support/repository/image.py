"""The image of the Dockerfile, built and run without an engine: in namespaces of Linux, on a minimal Debian.

It interprets the instructions that the Dockerfile has, and no others.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

import pytest

SUITE: Final = "bookworm"
"""Release of Debian that has the Python version of the Dockerfile."""

PACKAGES: Final = "python3,python3-venv,ca-certificates"
SEARCH_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEVICES: Final = "null", "zero", "random", "urandom"


class Instruction(NamedTuple):
    """An instruction of a Dockerfile, with its arguments on one line."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Image:
    """A file system, with the environment, folder, user and command of its containers."""

    root: Path
    environment: Mapping[str, str] = field(default_factory=lambda: {"PATH": SEARCH_PATH})
    folder: str = "/"
    user: str = "0"
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


def require_namespaces() -> None:
    """Skip the test if this machine cannot build an image: without root, a program or namespaces."""
    if os.geteuid() != 0:
        pytest.skip("mounts and other users need root")
    missing = [name for name in ("debootstrap", "unshare", "nsenter", "setpriv") if not shutil.which(name)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"namespaces are not permitted: {tried.stderr.decode().strip()}")


def assemble_base(folder: Path) -> Path:
    """Assemble a minimal Debian with Python, in the place of the image that the Dockerfile starts from."""
    arguments = "--variant=minbase", f"--include={PACKAGES}", SUITE, folder
    subprocess.run(["debootstrap", *arguments], check=True, capture_output=True)
    (folder / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    return folder


def parse_dockerfile(text: str) -> list[Instruction]:
    """Return the instructions of a Dockerfile, without comments and continued lines."""
    code = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    return [Instruction(*line.split(maxsplit=1)) for line in code.splitlines() if line.strip()]


def build_image(dockerfile: str, context: Path, base: Path, folder: Path) -> Image:
    """Execute the instructions of a Dockerfile, and return the image of the last stage.

    Args:
        dockerfile: text of the Dockerfile.
        context: folder with the files to copy.
        base: file system in the place of the base image.
        folder: folder for the file systems of the stages.
    """
    stages: dict[str, Image] = {}
    image = Image(base)
    for name, arguments in parse_dockerfile(dockerfile):
        match name:
            case "FROM":
                assert arguments.startswith("python:"), arguments
                stage = arguments.partition(" AS ")[2] or "last"
                image = stages[stage] = Image(folder / stage)
                subprocess.run(["cp", "--archive", base, image.root], check=True)
            case "RUN":
                run_step(image, re.sub(r"^(--mount=\S+\s+)+", "", arguments))
            case "COPY" if arguments.startswith("--from="):
                source, *paths = arguments.removeprefix("--from=").split()
                there, here = (
                    root / path.lstrip("/")
                    for root, path in zip((stages[source].root, image.root), paths, strict=True)
                )
                subprocess.run(["cp", "--archive", there, here], check=True)
            case "COPY":
                assert arguments == ". .", arguments
                copy_context(context, image.root / image.folder.lstrip("/"))
            case "WORKDIR":
                image = replace(image, folder=arguments)
                (image.root / arguments.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "ENV":
                variables = (each.split("=", 1) for each in shlex.split(arguments))
                added = {key: value.replace("$PATH", image.environment["PATH"]) for key, value in variables}
                image = replace(image, environment={**image.environment, **added})
            case "USER":
                image = replace(image, user=arguments)
            case "ENTRYPOINT":
                image = replace(image, entrypoint=tuple(json.loads(arguments)))
            case "CMD":
                image = replace(image, command=tuple(json.loads(arguments)))
            case "LABEL":
                pass
            case _:
                raise AssertionError(f"unknown instruction {name}")
    return image


def copy_context(context: Path, folder: Path) -> None:
    """Copy the files of the context that `.dockerignore` does not exclude."""
    lines = (context / ".dockerignore").read_text().splitlines()
    rules = [(line.lstrip("!"), line.startswith("!")) for line in lines if line and not line.startswith("#")]
    for file in list_context(context, rules):
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(context / file, target)


def list_context(context: Path, rules: Sequence[tuple[str, bool]]) -> Iterator[Path]:
    """Yield the files that the rules of `.dockerignore` keep; of several matching rules, the last counts.

    `rules` has each pattern, and whether it keeps the files that it matches.
    """
    patterns = [
        (re.compile(re.escape(rule).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*") + "(/.*)?"), kept)
        for rule, kept in rules
    ]
    for folder, folders, files in os.walk(context):
        folders[:] = [name for name in folders if name not in (".git", ".venv")]
        for name in files:
            file = Path(folder, name).relative_to(context)
            kept = [keeps for pattern, keeps in patterns if pattern.fullmatch(str(file))]
            if not kept or kept[-1]:
                yield file


def run_step(image: Image, command: str) -> None:
    """Run a build command as root, with this machine's variables for pip and certificates."""
    access = {
        name: value for name, value in os.environ.items() if re.match(r"PIP_(?!FIND_LINKS)|SSL_CERT", name)
    }
    finished = subprocess.run(
        isolate(image, ["/bin/sh", "-ec", f"cd {image.folder} && {command}"], access, is_build=True),
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, f"{command}\n{finished.stdout[-2000:]}\n{finished.stderr[-4000:]}"


def run_container(
    image: Image, *arguments: str, entrypoint: Iterable[str] | None = None, **environment: str
) -> list[str]:
    """Return the command that runs a container: read-only, without capabilities, with its own /tmp."""
    program = image.entrypoint if entrypoint is None else entrypoint
    return isolate(image, [*program, *(arguments or image.command)], environment)


def enter_container(image: Image, process: int, command: Sequence[str], **environment: str) -> list[str]:
    """Return the command that runs a further process in a container, as a health check does."""
    entered = ["nsenter", f"--target={process}", "--mount", "--pid", "--root", "--wd=/"]
    return [*entered, *_drop_rights(image), *_set_environment(image, environment), *command]


def find_first_process(container: int) -> int:
    """Return the id, on this machine, of the process that has id 1 in a container."""
    (process,) = Path(f"/proc/{container}/task/{container}/children").read_text().split()
    return int(process)


def isolate(
    image: Image, command: Sequence[str], environment: Mapping[str, str], *, is_build: bool = False
) -> list[str]:
    """Return the command that runs `command` in new namespaces, with the image as its file system."""
    root = shlex.quote(str(image.root))
    # A build reads the certificates of this machine; the file system of a container is read-only.
    last = f"--bind /etc/ssl/certs {root}/etc/ssl/certs" if is_build else f"-o remount,bind,ro {root}"
    script = [
        f"mount --bind {root} {root}",
        f"mount -t proc proc {root}/proc",
        f"mount -t tmpfs -o mode=1777 tmpfs {root}/tmp",
        *(f"touch {root}/dev/{name}; mount --bind /dev/{name} {root}/dev/{name}" for name in DEVICES),
        f"mount {last}",
    ]
    rights = [] if is_build else _drop_rights(image)
    inside = shlex.join(["chroot", str(image.root), *rights, *_set_environment(image, environment), *command])
    start = "unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation=private"
    return [*start, "/bin/sh", "-ec", "\n".join([*script, f"exec {inside}"])]


def _drop_rights(image: Image) -> list[str]:
    passwd = [line.split(":") for line in (image.root / "etc/passwd").read_text().splitlines()]
    (group,) = [entry[3] for entry in passwd if entry[2] == image.user]
    dropped = "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"
    return ["setpriv", f"--reuid={image.user}", f"--regid={group}", *dropped]


def _set_environment(image: Image, environment: Mapping[str, str]) -> list[str]:
    variables = {**image.environment, **environment}
    return ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in variables.items())]
