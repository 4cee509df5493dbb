"""Kernels that sort ratings into buckets (see ``rating_buckets``) by counting, without larger arrays."""

from __future__ import annotations

import numpy as np
from numba import njit

compiled = njit(nogil=True, cache=True)


@compiled
def count_rows(row_of, user, ptr):
    """Count every row's ratings into ptr[1:] and accumulate; ptr (rows + 1,) starts as zeros, row_of -1 is no row."""
    for e in range(user.size):
        t = row_of[user[e]]
        if t >= 0:
            ptr[t + 1] += 1
    for t in range(ptr.size - 1):
        ptr[t + 1] += ptr[t]


@compiled
def fill_rows(row_of, user, item, code, ptr, index_out, code_out):
    """Write the ratings bucket by bucket, in increasing order of items within each.

    Returns the row and the item of the first repeated pair, or (-1, -1).
    """
    free = ptr[:-1].copy()
    for e in range(user.size):
        t = row_of[user[e]]
        if t >= 0:
            index_out[free[t]] = item[e]
            code_out[free[t]] = code[e]
            free[t] += 1
    for t in range(ptr.size - 1):
        lo, hi = ptr[t], ptr[t + 1]
        ordered = True
        for e in range(lo + 1, hi):
            ordered = ordered and index_out[e - 1] < index_out[e]
        if ordered:
            continue
        keys = np.empty(hi - lo, np.int64)
        for e in range(lo, hi):
            keys[e - lo] = (np.int64(index_out[e]) << 32) | np.int64(code_out[e])
        keys.sort()
        for e in range(lo, hi):
            index_out[e] = keys[e - lo] >> 32
            code_out[e] = keys[e - lo] & 0xFFFFFFFF
            if e > lo and index_out[e] == index_out[e - 1]:
                return t, np.int64(index_out[e])
    return -1, np.int64(-1)


@compiled
def count_kept(ptr, keep, ptr_out):
    """Accumulate into ptr_out (zeros at first) how many entries of every bucket are kept."""
    for t in range(ptr.size - 1):
        kept = 0
        for e in range(ptr[t], ptr[t + 1]):
            kept += keep[e]
        ptr_out[t + 1] = ptr_out[t] + kept


@compiled
def by_item(ptr, index, code, ptr_out, row_out, code_out, offset):
    """Turn buckets by row into buckets by item: ptr (rows + 1,) into ptr_out (items + 1,), filled from ``offset`` on.

    Rows are counted from 0 within ptr and are in increasing order in every item's bucket.
    """
    ptr_out[:] = 0
    for e in range(ptr[0], ptr[-1]):
        ptr_out[index[e] + 1] += 1
    ptr_out[0] = offset
    for j in range(ptr_out.size - 1):
        ptr_out[j + 1] += ptr_out[j]
    free = ptr_out[:-1].copy()
    for t in range(ptr.size - 1):
        for e in range(ptr[t], ptr[t + 1]):
            j = index[e]
            row_out[free[j]] = t
            code_out[free[j]] = code[e]
            free[j] += 1
