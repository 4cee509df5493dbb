"""Ratings of one's own: 120 users, 40 items, 2,400 ratings, every fifth to test with, users of six regions.

``python example.py`` writes ratings.csv beside this file, for ``fedrepro run ratings.yaml``, and completes the same
ratings from memory.
"""

from pathlib import Path

import numpy as np

from fedrepro import FedMCADMM, SplitCompletion, SplitRatings, run

HERE = Path(__file__).parent
USERS, ITEMS, EACH = 120, 40, 20


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """user, item, rating (1 to 5) and whether to test with it, of each rating; the region of each user."""
    draw = np.random.default_rng(0)
    taste, trait = draw.normal(size=(USERS, 2)), draw.normal(size=(ITEMS, 2))
    user = np.repeat(np.arange(USERS), EACH)
    item = np.concatenate([draw.choice(ITEMS, EACH, replace=False) for _ in range(USERS)])
    stars = 3 + (taste[user] * trait[item]).sum(axis=1) + draw.normal(0, 0.3, size=user.size)
    return user, item, np.clip(np.rint(stars), 1, 5), np.arange(user.size) % 5 == 0, draw.permutation(USERS) % 6


def write(folder: Path) -> None:
    """ratings.csv with the columns user, item, rating, split and region."""
    user, item, rating, test, region = arrays()
    lines = ["user,item,rating,split,region"]
    lines += [
        f"u{u:03d},i{i:03d},{r:g},{'test' if t else 'train'},r{region[u]}"
        for u, i, r, t in zip(user, item, rating, test, strict=True)
    ]
    (folder / "ratings.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(HERE)
    user, item, rating, test, region = arrays()
    ratings = SplitRatings(user, item, rating, USERS, ITEMS, test=test)
    problem = SplitCompletion(ratings, region, r=3, lam=0.1, gam=0.1)
    history = run(FedMCADMM(m=3), problem, rounds=40)
    print(
        f"test RMSE {history['rmse'][-1]:.3f} after {history.rounds[-1]} rounds, {history['rmse'][0]:.3f} at the start"
    )
