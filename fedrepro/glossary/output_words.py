"""Words that the output uses and that no spec can name."""

from __future__ import annotations

from collections.abc import Mapping

from fedrepro.claims.verdict_words import MEANING
from fedrepro.spec.tiers import TIERS

MEANINGS: Mapping[str, str] = {
    **MEANING,
    "margin": (
        "the distance of the two sides of a check, positive if it holds, in the unit of what is compared; its 95 % "
        "interval is over trials"
    ),
    "reading": "one way to understand the vague words of a claim; a claim is judged under all of them",
    "window of rounds": (
        "the round at which a check without words of the lexicon starts: as written, half of it, or 1.25 times it"
    ),
    "evidence": "what a verdict rests on: paper tier, fewer trials, a variant of the data, a smaller tier, a stand-in",
    "stale": "not computed by today's code, or from another version of the spec or the data",
    "stand-in": "generated data in place of a dataset that is absent; its results never count for a claim",
    "variant": "the paper's dataset in another size or version",
    "discrepancy": "a point in which the paper, its released program and this project differ",
    "setting": "a value that the paper leaves open, or prints otherwise than its program",
    "tier": f"the size of an experiment: {', '.join(TIERS)}",
    "trial": "one run of every curve with its own random draws; its curves share data, start and the clients drawn",
    "client": "one of the P parties that hold the data; m of them take part in a round",
    "round": "one exchange of messages between clients and server; round 0 is the initial point",
    "numbers sent up": "how many numbers the clients have sent to the server so far, all clients together",
    "bits sent up": "how many bits the clients have sent so far: 32 for each number, or the bit width of a quantizer",
    "sd": "standard deviation over trials",
    "seed": "the start of the random numbers of a trial; it follows from the spec and the number of the trial",
    "non-iid": "data whose clients have different distributions, for example two classes each",
    "diverged": "a run whose metric is no longer finite; it counts up to its last finite value",
}
"""What each word means."""

ALSO: Mapping[str, tuple[str, ...]] = {
    "window of rounds": ("window",),
    "numbers sent up": ("uplink",),
    "bits sent up": ("bits",),
    "seed": ("seeds",),
    "non-iid": ("noniid", "non-i.i.d."),
}
"""Other names of some words."""
