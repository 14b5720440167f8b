"""Damage to the files of a store, as disks, programs and people do it."""

from __future__ import annotations

import os
import random


class Damager:
    """Harms files of a store, one at a time; from a seed.

    ``harm`` returns what it did and the keys of the files that are to be restored.
    """

    KINDS = (
        "flip",
        "cut",
        "extend",
        "zero",
        "swap",
        "swap groups",
        "delete",
        "foreign",
    )

    def __init__(self, store, seed):
        self.store, self.random = store, random.Random(seed)
        greens = [key for key in store.files if "/greens.zarr/" in key]
        served = (".nc", ".csv", ".html", ".png", ".json")
        results = [
            key for key in set(store.files) - set(greens) if key.endswith(served)
        ]
        results.sort()
        self.pools = [greens] * 4 + [results]

    def harm(self):
        kind = self.random.choice(self.KINDS)
        pool = self.random.choice(self.pools)
        key = self.random.choice(pool)
        path, content = self.store.root / key, bytearray(self.store.files[key])
        if kind.startswith("swap"):
            partner = self._partner(key, pool, kind)
            path.write_bytes(self.store.files[partner])
            (self.store.root / partner).write_bytes(content)
            return f"{kind}: {key}, {partner}", [key, partner]
        if kind == "delete":
            path.unlink()
        elif kind == "foreign":
            own, other = self.store.campaign, self.store.other
            theirs = key.replace(own, other)
            if theirs not in self.store.others:
                theirs = self.random.choice(sorted(self.store.others))
            path.write_bytes(self.store.others[theirs])
        else:
            before = path.stat()
            path.write_bytes(self._changed(kind, content))
            if self.random.random() < 0.5:
                # bytes that rot change no time of modification
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        return f"{kind}: {key}", [key]

    def _partner(self, key, pool, kind):
        if kind == "swap groups" and "/c/" in key:
            array = key.partition("/c/")[0]
            alike = [k for k in pool if k.startswith(f"{array}/c/") and k != key]
            pool = alike or pool
        return self.random.choice([k for k in pool if k != key])

    def _changed(self, kind, content):
        if kind == "flip":
            place = self.random.randrange(8 * len(content))
            content[place // 8] ^= 1 << place % 8
        elif kind == "cut":
            del content[self.random.randrange(len(content)) :]
        elif kind == "extend":
            content += self.random.randbytes(self.random.randint(1, 64))
        else:
            start = self.random.randrange(len(content))
            stop = min(len(content), start + self.random.randint(1, 4096))
            content[start:stop] = bytes(stop - start)
        return bytes(content)
