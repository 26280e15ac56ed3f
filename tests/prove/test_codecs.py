# SPDX-License-Identifier: Apache-2.0
"""The native codec for long: against the one in Python, under sanitizers, and for what it keeps."""

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random, SystemRandom

import pytest
from tests.each_codec import native_codec

native = native_codec()  # or all of these are skipped

from tests.wire import both_codecs  # noqa: E402  (it needs the native one)

pytestmark = [pytest.mark.prove, pytest.mark.timeout(3 * 3600)]

ROOT = Path(__file__).parents[2]
PLAYS = int(os.environ.get("KOHORT_CODEC_PLAYS", "300000"))
SEED = int(os.environ.get("KOHORT_CODEC_SEED", "0")) or SystemRandom().getrandbits(40)
CALLS = 100_000
REFUSALS = 300
SANITIZERS = "address,undefined"
KEPT_BYTES = 8 << 20


def play(plays, seed):
    """Play single seeds of one seed, so that one which finds something is played again alone."""
    random = Random(seed)
    for _ in range(plays):
        cls, version = random.choice(both_codecs.VERSIONED)
        single = random.getrandbits(60)
        try:
            both_codecs.play(Random(single), cls, version)
        except AssertionError as error:
            error.add_note(f"seed {seed}, play({single}) of {cls.__name__} v{version}")
            raise


def test_both_say_the_same_for_long():
    play(PLAYS, SEED)


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def repeat(random, cls, version, calls):
    """Decode and encode one message again and again, and then some that are refused."""
    drawn = both_codecs.message(random, cls, version)
    encode = native.encoder(cls, version)
    decode = native.decoder(cls, version, 10_000, lenient=False)
    data = encode(drawn)
    for _ in range(calls):
        decode(data, 0)
    for _ in range(calls // 10):
        encode(drawn)
    for _ in range(REFUSALS):
        both_codecs.outcome(decode, both_codecs.damage(random, data), 0)
        both_codecs.bend(random, drawn)
        both_codecs.outcome(encode, drawn)


def test_memory_stays_flat():
    """A block of memory that one call in a thousand keeps would show, of every message, and one
    that every third refusal keeps.
    """
    random = Random(SEED)
    for cls, version in both_codecs.VERSIONED:
        repeat(random, cls, version, 10)  # what is made at first use is made
        gc.collect()
        blocks, size = sys.getallocatedblocks(), resident_bytes()
        repeat(random, cls, version, CALLS)
        gc.collect()
        assert sys.getallocatedblocks() - blocks < CALLS // 1000, (cls.__name__, version, SEED)
        assert resident_bytes() - size < KEPT_BYTES, (cls.__name__, version, SEED)


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    """The environment of a tree whose native codec watches each of its own steps."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("there is no C compiler, expected one with sanitizers")
    tree = tmp_path_factory.mktemp("sanitized")
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "src", tree / "src", ignore=ignored)
    shutil.copy(ROOT / "hatch_build.py", tree)
    flags = f"-O1 -g -fsanitize={SANITIZERS} -fno-sanitize-recover=all"
    built = subprocess.run(
        [sys.executable, "hatch_build.py"],
        cwd=tree,
        env={**os.environ, "CFLAGS": flags, "LDFLAGS": f"-fsanitize={SANITIZERS}"},
        capture_output=True,
        text=True,
        check=False,
    )
    library = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=False
    ).stdout.strip()
    if built.returncode or not Path(library).is_file():
        reason = built.stderr.strip().splitlines()[-1:] or [f"there is no {library}"]
        pytest.skip(f"the compiler has no sanitizers: {reason[0]}")
    return {
        **os.environ,
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself gives not all back at its end
        "PYTHONMALLOC": "malloc",  # so that each object is watched by itself
        "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{ROOT}",
        "KOHORT_CODEC": "native",
    }


def run(environment, *arguments):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return done.stdout


def test_the_sanitized_codec_is_the_one_that_runs(sanitized):
    found = run(sanitized, "-c", "from kohort.native import _codec; print(_codec.__file__)")
    assert found.startswith(sanitized["PYTHONPATH"].split(os.pathsep)[0])


def test_the_sanitizers_see_nothing_while_both_are_played(sanitized):
    program = "import sys; from tests.prove.test_codecs import play; play(*map(int, sys.argv[1:]))"
    run(sanitized, "-c", program, str(PLAYS // 10), str(SEED))


def test_the_sanitizers_see_nothing_in_the_tests_of_the_codec(sanitized):
    files = ["test_native_codec", "test_codec", "test_golden_frames", "test_own_layouts"]
    paths = [f"tests/wire/{name}.py" for name in files]
    run(sanitized, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not python", *paths)
