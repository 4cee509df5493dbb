"""Words that the output uses and that no spec can name."""

from __future__ import annotations

from collections.abc import Mapping

from fedrepro.claims import classes
from fedrepro.claims.verdict_words import MEANING
from fedrepro.spec.tiers import TIERS

READINGS: Mapping[str, str] = {
    classes.EVERY: "all readings of a claim give the same answer",
    classes.ALL_BUT: "all readings of a claim give the same answer, except with the named values of one dimension",
    classes.CERTAINTY: "some readings of a claim are within noise, but none gives the opposite answer",
    classes.TURNS: "some readings of a claim give the opposite answer; the dimension that decides is named",
    classes.ONE: "the check of a claim has no word of the lexicon, so there is one way to understand it",
}
"""How the answers of all readings of a claim agree."""

MEANINGS: Mapping[str, str] = {
    **MEANING,
    "margin": (
        "the distance of the two sides of a check, positive if it holds, in the unit of what is compared; its 95 % "
        "interval is over trials"
    ),
    "interval": "the range that a mean over trials has with 95 % confidence; for two curves, that of their difference",
    "reading": "one way to understand the vague words of a claim; a claim is judged under all of them",
    **READINGS,
    "window of rounds": (
        "the round at which a check without words of the lexicon starts: as written, half of it, or 1.25 times it"
    ),
    "evidence": "what a verdict rests on: paper tier, fewer trials, a variant of the data, a smaller tier, a stand-in",
    "stale": "not computed by today's code, or from another version of the spec or the data",
    "stand-in": "generated data in place of a dataset that is absent; its results never count for a claim",
    "variant": "the paper's dataset in another size or version",
    "discrepancy": "a point in which the paper, its released program and this project differ",
    "setting": "a value that the paper leaves open, or prints otherwise than its program",
    "set": "one setting, or several together; the curves that it changes were computed again",
    "printed": "the origin of a value that the paper, or the other version of the same work, prints",
    "released": "the origin of a value that the authors' published program uses",
    "ours": "the origin of a value that neither the paper nor its program has, or of a claim that we added",
    "inferred": "the origin of a value that was found by fitting the paper's printed results; it never leads",
    "cause": (
        "a setting that turns a verdict, where the interval of the margin's change over the same trials excludes zero; "
        "or a reading that turns it"
    ),
    "uncertain": "a setting that turns or decides a verdict, but the interval of the margin's change contains zero",
    "under-specified": "a verdict that depends on a parameter whose value the paper does not print",
    "locked": "recorded by `fedrepro lock` before the first run; the claim is then known to be older than its results",
    "receipt": "a record that results were computed again on some machine, and how far the numbers agreed",
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
    "interval": ("intervals", "confidence interval"),
    "in all but": ("all but",),
    "only certainty changes": ("certainty",),
    "turns round": ("turns",),
    "under-specified": ("underspecified",),
    "locked": ("lock",),
    "receipt": ("receipts",),
    "numbers sent up": ("uplink",),
    "bits sent up": ("bits",),
    "seed": ("seeds",),
    "non-iid": ("noniid", "non-i.i.d."),
}
"""Other names of some words."""
