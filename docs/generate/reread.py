"""The list in ``docs/changed-checks.md`` of checks that were changed after their results, before there was a lexicon.

``python docs/generate/reread.py`` rewrites it between its marks, from the history of the repository up to the commit
that added the lexicon. A check is changed if its expression or panel there differs from that in the commit that first
stored results of the figure at the paper tier, and added if its claim did not exist then. Later claims are
"readings chosen after results", or have a lock (``fedrepro lock``). Requires git and the complete history.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "changed-checks.md"
LEXICON = "fedrepro/lexicon/words.yaml"
MARKED = re.compile(r"(<!-- reread -->\n).*?(<!-- end -->)", re.DOTALL)

Ages = dict[str, str]
"""``same``, ``changed``, ``added``, or ``before`` (no results are stored) for each claim."""


def written(text: str, ages: Ages) -> str:
    """Return the page with the list of these claims."""
    return MARKED.sub(lambda m: m[1] + "\n" + _list(ages) + "\n" + m[2], text)


def _list(ages: Ages) -> str:
    count = {age: list(ages.values()).count(age) for age in ("same", "changed", "added", "before")}
    lines = [
        f"Of {len(ages)} checks, {count['same']} were unchanged since the first results of their figure at the paper "
        f"tier were stored, and {count['before']} belonged to figures without such results. {count['changed']} had "
        f"been rewritten since then (some only reworded), and {count['added']} added.\n"
    ]
    for age, words in (("changed", "written anew"), ("added", "added")):
        named: dict[str, list[str]] = defaultdict(list)
        for claim in (claim for claim, own in ages.items() if own == age):
            named[claim.split(".")[0]].append(f"`{claim}`")
        lines += [f"* *{words}, {paper}*: {', '.join(claims)}" for paper, claims in named.items()]
    return "\n".join(lines) + "\n"


def ages() -> Ages:
    """Return whether every claim's check was as old as the first stored results of its figure, before the lexicon."""
    known: Ages = {}
    last = before_lexicon()
    for spec in _specs(last):
        now = _checks(_git("show", f"{last}:{spec}"))
        name = Path(spec).relative_to("experiments").with_suffix(".json").as_posix()
        results = f"results/paper/{name}"
        commits = _git("log", "--diff-filter=A", "--format=%H", "--reverse", last, "--", results).split()
        then = _checks(_git("show", f"{commits[0]}:{spec}")) if commits else {}
        for claim, check in now.items():
            age = "added" if claim not in then else "same" if then[claim] == check else "changed"
            known[claim] = age if commits else "before"
    return known


def before_lexicon() -> str:
    """Return the last commit without the lexicon."""
    added = _git("log", "--diff-filter=A", "--format=%H", "--reverse", "--", LEXICON).split()
    return _git("rev-parse", f"{added[0]}^").strip()


def _specs(commit: str) -> list[str]:
    """Return the paths of the specs of all figures in a commit, in order."""
    return [path for path in _git("ls-tree", "-r", "--name-only", commit, "experiments").split() if _is_spec(path)]


def _is_spec(path: str) -> bool:
    return Path(path).match("experiments/*/*.yaml")


def _checks(text: str) -> dict[str, tuple[str, str]]:
    """Return the check of every claim of a spec, independent of line breaks, and its panel."""
    claims: list[dict[str, Any]] = (yaml.safe_load(text) or {}).get("claims") or []
    return {c["id"]: (_form(str(c.get("check", "0"))), str(c["panel"])) for c in claims}


def _form(check: str) -> str:
    return ast.dump(ast.parse(check.strip(), mode="eval"))


def _git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), ages()), encoding="utf-8")
