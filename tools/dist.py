# SPDX-License-Identifier: Apache-2.0
"""Build what a package index gets, check it, and try each wheel in an environment of its own.

    python tools/dist.py [--out dist] [PYTHON ...]

PYTHON is an interpreter: a wheel with the native codec is built for each, and is tried by it. The
pure wheel is tried by the first. Leaves with 1, and with one line, where anything is not as it
should be. `make dist` gives it the interpreters that are on the machine, and the tools it needs.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
TRIAL = Path(__file__).with_name("try_wheel.py")


class FailedError(Exception):
    """A step has failed; the text is what it says."""


def run(*argv: str | Path, **environment: str) -> str:
    done = subprocess.run(
        [str(one) for one in argv],
        cwd=tempfile.gettempdir(),  # a checkout that is the working directory would be imported
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise FailedError(f"{' '.join(map(str, argv))}\n{done.stdout}{done.stderr}")
    return done.stdout


def step(text: str) -> None:
    print(text, flush=True)


def built(python: Path, sdist: Path, out: Path, codec: str) -> Path:
    """A wheel, built of the source distribution as for whoever has no wheel."""
    before = set(out.glob("*.whl"))
    command = ("-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps")
    run(python, *command, "--wheel-dir", out, sdist, KOHORT_CODEC=codec)
    (wheel,) = set(out.glob("*.whl")) - before
    return wheel


def environment(interpreter: str, home: Path) -> Path:
    """The interpreter of a new environment, in which nothing is but pip."""
    run(interpreter, "-m", "venv", home)
    return home / "bin" / "python"


def tried(python: Path, wheel: Path, codec: str) -> str:
    """What the trial says of a wheel that is installed alone, with what it needs."""
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    return run(python, "-I", TRIAL, codec).strip()


def make(out: Path, interpreters: list[str], work: Path) -> None:
    tool = sys.executable
    step("building the source distribution")
    run(tool, "-m", "build", "--sdist", "--outdir", out, ROOT)
    (sdist,) = out.glob("*.tar.gz")
    pure = None
    for interpreter in interpreters:
        for codec in ("native",) if pure else ("python", "native"):
            python = environment(interpreter, work / f"{codec}-{len(list(work.iterdir()))}")
            wheel = built(python, sdist, out, codec)
            step(f"{wheel.name}: {tried(python, wheel, codec)}")
            pure = pure or python
    files = sorted(out.iterdir())
    step("twine check, check-wheel-contents")
    run(tool, "-m", "twine", "check", "--strict", *files)
    run(tool, "-m", "check_wheel_contents", *out.glob("*.whl"))
    step("writing the SBOM (CycloneDX) of an environment that has Kohort and what it needs")
    assert pure is not None
    run(pure, "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools")
    name = sdist.name.removesuffix(".tar.gz") + ".cdx.json"
    run(tool, "-m", "cyclonedx_py", "environment", pure, "--output-file", out / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("interpreters", nargs="*", default=[sys.executable])
    args = parser.parse_args()
    out = args.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    try:
        with tempfile.TemporaryDirectory() as work:
            make(out, args.interpreters, Path(work))
    except FailedError as error:
        sys.exit(f"failed: {error}")
    for path in sorted(out.iterdir()):
        step(f"  {path.name}  {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
