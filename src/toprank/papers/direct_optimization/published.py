"""What was published for the methods of the direct-optimisation paper: the figures ours stand beside."""

from __future__ import annotations

TABLE_2 = {
    "SVMmap": {"OHSUMED": 0.4456, "WSJ": 0.4406, "AP": 0.4208, "TD2003": 0.2554, "TD2004": 0.3804},
    "AdaRank": {"OHSUMED": 0.4419, "WSJ": 0.4287, "AP": 0.4233, "TD2003": 0.1373, "TD2004": 0.3308},
    "PermuRank": {"OHSUMED": 0.4495, "WSJ": 0.4617, "AP": 0.4527, "TD2003": 0.2768, "TD2004": 0.3636},
    "RankSVM": {"OHSUMED": 0.4469, "WSJ": 0.4218, "AP": 0.4144, "TD2003": 0.2564, "TD2004": 0.3505},
    "RankBoost": {"OHSUMED": 0.4403, "WSJ": 0.4203, "AP": 0.4081, "TD2003": 0.2125, "TD2004": 0.3835},
}
"""MAP, as printed in Table 2."""

TABLE_3 = {
    "SVMmap": {"OHSUMED": 0.4669, "WSJ": 0.5867, "AP": 0.5415, "TD2003": 0.4014, "TD2004": 0.4586},
    "AdaRank": {"OHSUMED": 0.4803, "WSJ": 0.5547, "AP": 0.5010, "TD2003": 0.2912, "TD2004": 0.4017},
    "PermuRank": {"OHSUMED": 0.4764, "WSJ": 0.5846, "AP": 0.5765, "TD2003": 0.3823, "TD2004": 0.4467},
    "RankSVM": {"OHSUMED": 0.4649, "WSJ": 0.5069, "AP": 0.4653, "TD2003": 0.3787, "TD2004": 0.4092},
    "RankBoost": {"OHSUMED": 0.4726, "WSJ": 0.5362, "AP": 0.4902, "TD2003": 0.2704, "TD2004": 0.4640},
}
"""NDCG@3, as printed in Table 3."""

LETOR: dict[str, dict[str, tuple[float | None, ...]]] = {
    "ohsumed-letor2": {
        "SVMmap": (0.4456, None, 0.4669, None, None),
        "AdaRank": (0.4419, 0.5420, 0.4803, 0.4554, 0.4385),
        "PermuRank": (0.4495, None, 0.4764, None, None),
        "RankSVM": (0.4469, 0.4952, 0.4649, 0.4579, 0.4411),
        "RankBoost": (0.4403, 0.4977, 0.4726, 0.4502, 0.4356),
        "ListNet": (0.4496, 0.5231, 0.4777, 0.4662, 0.4489),
    },
    "ohsumed-letor3": {
        "SVMmap": (0.4453, None, None, None, None),
        "AdaRank": (0.4487, 0.5388, 0.4682, 0.4613, 0.4429),
        "RankSVM": (0.4334, 0.4958, 0.4207, 0.4164, 0.4140),
        "RankBoost": (0.4411, 0.4632, 0.4555, 0.4494, 0.4302),
        "ListNet": (0.4457, 0.5326, 0.4732, 0.4432, 0.4410),
    },
    "mq2008-letor4": {
        "AdaRank": (0.4764, None, None, None, None),
        "RankSVM": (0.4696, 0.3627, 0.4286, 0.4695, 0.2279),
        "RankBoost": (0.4775, None, None, None, None),
        "ListNet": (0.4775, 0.3754, 0.4324, 0.4747, 0.2303),
    },
}
"""MAP, NDCG@1, 3, 5, 10 on the test parts. OHSUMED of LETOR 2.0: the files that come with the collection, and the
paper for SVMmap and PermuRank. LETOR 3.0 and MQ2008: as quoted in the project's notes, see `FROM_MEMORY`."""

FROM_MEMORY = ("SVMmap on OHSUMED (LETOR 3.0)", "all rows of MQ2008")
"""Published figures that were quoted from memory and not checked against the publication."""
