# SPDX-License-Identifier: Apache-2.0
"""Hold commits against the rules of CONTRIBUTING.md, "Commits".

    python tools/commits.py [RANGE]          commits of a range; without one, all since these rules
    python tools/commits.py --message FILE   the commit that is being made: what the hook asks

Prints a line for each rule that is broken, and exits with 1 if there is one.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
LONGEST_LINE = 72
MOST_LINES = 800
GENERATED = re.compile(
    r"\.(json|jsonl|csv|tsv|gz|bin|svg|lock)$"
    r"|^docs/((settings|metrics|conformance|protocol)\.md|public-api\.txt)$"
)
MOVES = ("Move", "Rename")
"""A subject that begins so may change any number of lines: moving and renaming change one at each
place of use, and nothing else belongs into such a commit."""

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git knows it everywhere

_NOT_IMPERATIVE = re.compile(r"(ed|ing|[^su]s)$")
_IMPERATIVE_ALL_THE_SAME = frozenset(
    {"bring", "embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "spring"}
)


def faults(message: str, changes: Iterable[tuple[int, str]]) -> Iterator[str]:
    """What is wrong with a commit: its message, and the lines that it changes in each file."""
    subject, *rest = message.rstrip().split("\n")
    if len(subject) > LONGEST_LINE:
        yield f"the subject has {len(subject)} characters, expected {LONGEST_LINE} at most"
    first = subject.split(" ")[0]
    if not first[:1].isupper():
        yield f"the subject begins with {first!r}, expected a capital letter"
    verb = first.lower().strip(":,")
    if _NOT_IMPERATIVE.search(verb) and verb not in _IMPERATIVE_ALL_THE_SAME:
        yield f"the subject begins with {first!r}, expected an imperative"
    if subject.endswith("."):
        yield "the subject ends with a full stop, expected none"
    if not any(line.strip() for line in rest):
        yield "there is no body, expected one that says why"
    elif rest[0].strip():
        yield "the second line is not blank"
    for number, line in enumerate(rest, 2):
        if len(line) > LONGEST_LINE and " " in line.strip():
            yield f"line {number} has {len(line)} characters, expected {LONGEST_LINE} at most"
    lines = sum(count for count, path in changes if not GENERATED.search(path))
    if lines > MOST_LINES and first not in MOVES:
        yield (
            f"{lines} lines are changed, expected {MOST_LINES} at most but for moves"
            f" ({' or '.join(MOVES)} as the first word) and generated data"
        )


def changes_of(before: str, after: str) -> list[tuple[int, str]]:
    """The changed lines of each file between two trees, of which "" is what is staged. A moved file
    counts with what is different in it, and a text that was only wrapped anew with nothing.
    """
    found = []
    trees = (before, after) if after else ("--cached", before)
    for line in git("diff", *trees, "--numstat", "-M").splitlines():
        added, removed, path = line.split("\t")
        if added != "-" and not is_wrapped(before, after, path):  # "-": a binary file
            found.append((int(added) + int(removed), path.rstrip("}")))
    return found


def parent_of(commit: str) -> str:
    """The commit before, that of what is staged for ""; the empty tree where there is none."""
    name = f"{commit}^" if commit else "HEAD"
    try:
        return git("rev-parse", "--verify", "--quiet", name).strip()
    except subprocess.CalledProcessError:
        return EMPTY_TREE


def is_wrapped(before: str, after: str, path: str) -> bool:
    """Whether a text has the words that it had."""
    if not path.endswith(".md") or "=>" in path:
        return False
    try:
        old, new = git("show", f"{before}:{path}"), git("show", f"{after}:{path}")
    except subprocess.CalledProcessError:  # it is new, or gone
        return False
    return old.split() == new.split()


def git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True, encoding="utf-8"
    )
    return done.stdout


def since_these_rules() -> str:
    """The commits behind the one that brought this file; the oldest of a history that is cut."""
    name = Path(__file__).relative_to(ROOT).as_posix()
    begun = git("log", "--diff-filter=A", "--format=%H", "--", name).split()
    return f"{begun[-1]}..HEAD" if begun else "HEAD~0..HEAD"


def check_range(commits: str) -> int:
    broken = 0
    for commit in git("log", "--no-merges", "--format=%H", commits).split():
        message = git("show", "-s", "--format=%B", commit)
        for fault in faults(message, changes_of(parent_of(commit), commit)):
            print(f"{commit[:8]} {message.splitlines()[0][:50]}: {fault}")
            broken += 1
    return broken


def check_message(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    text = text.split("# ------------------------ >8 -----", 1)[0]  # the diff of `commit --verbose`
    message = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    if not message.strip() or message.startswith(("Merge ", "Revert ", "fixup! ", "squash! ")):
        return 0
    found = list(faults(message, changes_of(parent_of(""), "")))
    for fault in found:
        print(f"commit: {fault}", file=sys.stderr)
    return len(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("range", nargs="?", help="as git has it: main..HEAD")
    parser.add_argument("--message", type=Path, metavar="FILE", help="of the commit being made")
    args = parser.parse_args()
    if args.message is not None:
        return bool(check_message(args.message))
    if why := no_history():
        print(f"commits: nothing is checked: {why}")
        return 0
    return bool(check_range(args.range or since_these_rules()))


def no_history() -> str:
    """Why git tells nothing of the commits here, as of an unpacked archive; "" where it does."""
    try:
        git("rev-parse", "--verify", "HEAD")
    except FileNotFoundError:
        return "git is not installed"
    except subprocess.CalledProcessError as error:
        return (error.stderr or "there is no history").strip().splitlines()[0]
    return ""


if __name__ == "__main__":
    sys.exit(main())
