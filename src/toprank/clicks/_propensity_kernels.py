# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""How likely a position is seen, from clicks added up by document and position (`log.Counts`)."""

from __future__ import annotations

import math

import numpy as np

from ..core.jit import kernel


@kernel
def conditional_likelihood(ptr, place, shown, clicks, weight, theta, grad, hessian):
    """ℓ(θ) = Σ_pairs w Σ_k C_k (θ_k − log Σ_l N_l e^{θ_l}), its gradient and −∇²ℓ.

    The likelihood of where the clicks of a document fell, given how many there were: its own attraction cancels.
    """
    grad[:] = 0.0
    hessian[:] = 0.0
    value = 0.0
    for i in range(len(ptr) - 1):
        a, b = ptr[i], ptr[i + 1]
        total = 0.0
        for r in range(a, b):
            total += clicks[r]
        if b - a < 2 or total == 0.0 or weight[i] == 0.0:
            continue
        mass = 0.0
        for r in range(a, b):
            mass += shown[r] * math.exp(theta[place[r]])
        for r in range(a, b):
            k = place[r]
            share = shown[r] * math.exp(theta[k]) / mass
            value += weight[i] * clicks[r] * (theta[k] - math.log(mass))
            grad[k] += weight[i] * (clicks[r] - total * share)
            hessian[k, k] += weight[i] * total * share
            for s in range(a, b):
                other = shown[s] * math.exp(theta[place[s]]) / mass
                hessian[k, place[s]] -= weight[i] * total * share * other
    return value


@kernel
def position_model(ptr, place, shown, clicks, weight, rounds, tolerance, seen, attracts):
    """EM for P(click) = seen_k · attracts_pair: in place; return the rounds used, or −1 where they did not suffice.

    Of the impressions without a click, a share seen (1 − attracts)/(1 − seen·attracts) was seen, and a share
    attracts (1 − seen)/(1 − seen·attracts) would have been clicked if it had been.
    """
    hits, total = np.empty(len(seen)), np.empty(len(seen))
    for step in range(rounds):
        hits[:] = 0.0
        total[:] = 0.0
        for i in range(len(ptr) - 1):
            if weight[i] == 0.0:
                continue
            wanted, impressions = 0.0, 0.0
            for r in range(ptr[i], ptr[i + 1]):
                k = place[r]
                without = shown[r] - clicks[r]
                both = 1.0 - seen[k] * attracts[i]
                looked, liked = 0.0, 0.0
                if both > 0.0:
                    looked = seen[k] * (1.0 - attracts[i]) / both
                    liked = attracts[i] * (1.0 - seen[k]) / both
                hits[k] += weight[i] * (clicks[r] + without * looked)
                total[k] += weight[i] * shown[r]
                wanted += clicks[r] + without * liked
                impressions += shown[r]
            attracts[i] = wanted / impressions
        change = 0.0
        for k in range(len(seen)):
            if total[k] > 0.0:
                new = hits[k] / total[k]
                change = max(change, abs(new - seen[k]))
                seen[k] = new
        if change < tolerance:
            return step + 1
    return -1


@kernel
def trust_model(ptr, place, shown, clicks, weight, rounds, tolerance, right, wrong, attracts):
    """EM for P(click) = γ·right_k + (1 − γ)·wrong_k, γ the attraction of the pair: in place; rounds used, or −1."""
    n = len(right)
    ups, all_ups, downs, all_downs = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for step in range(rounds):
        ups[:], all_ups[:], downs[:], all_downs[:] = 0.0, 0.0, 0.0, 0.0
        for i in range(len(ptr) - 1):
            if weight[i] == 0.0:
                continue
            g, liked, impressions = attracts[i], 0.0, 0.0
            for r in range(ptr[i], ptr[i + 1]):
                k = place[r]
                without = shown[r] - clicks[r]
                p_click = g * right[k] + (1.0 - g) * wrong[k]
                p_none = 1.0 - p_click
                on_click = g * right[k] / p_click if p_click > 0.0 else 0.0
                on_none = g * (1.0 - right[k]) / p_none if p_none > 0.0 else 0.0
                yes = clicks[r] * on_click + without * on_none
                ups[k] += weight[i] * clicks[r] * on_click
                all_ups[k] += weight[i] * yes
                downs[k] += weight[i] * clicks[r] * (1.0 - on_click)
                all_downs[k] += weight[i] * (shown[r] - yes)
                liked += yes
                impressions += shown[r]
            attracts[i] = liked / impressions
        change = 0.0
        for k in range(n):
            if all_ups[k] > 0.0:
                change = max(change, abs(ups[k] / all_ups[k] - right[k]))
                right[k] = ups[k] / all_ups[k]
            if all_downs[k] > 0.0:
                change = max(change, abs(downs[k] / all_downs[k] - wrong[k]))
                wrong[k] = downs[k] / all_downs[k]
        if change < tolerance:
            return step + 1
    return -1
