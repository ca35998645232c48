"""Spellings of one value: "Yes" and "yes ", "M" and "male"."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

# Words for the same, merged where a column has more than one of them; in lower case.
_SYNONYMS = (
    {"m", "male", "man", "männlich", "mann"},
    {"f", "female", "woman"},
    {"w", "weiblich", "frau"},
    {"h", "homme"},
    {"f", "femme"},
    {"y", "yes"},
    {"n", "no"},
    {"t", "true"},
    {"f", "false"},
    {"j", "ja"},
    {"n", "nein"},
    {"o", "oui"},
    {"n", "non"},
)


def plain(name: str) -> str:
    """Return a name without differences in case and space."""
    return " ".join(name.casefold().split())


def merged_spellings(counts: Mapping[str, int]) -> dict[str, str]:
    """Return for each spelling that is given up the one that is kept: the most frequent, or else the first."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in counts:
        groups[plain(name)].append(name)
    for words in _SYNONYMS:
        first, *others = [word for word in groups if word in words] or [""]
        for word in others:
            groups[first] += groups.pop(word)
    merged: dict[str, str] = {}
    for names in groups.values():
        kept = min(names, key=lambda name: (-counts[name], name)).strip()
        merged |= {name: kept for name in names if name != kept}
    return merged


def level_finder(known: Sequence[str], spellings: Mapping[str, str] | None) -> Callable[[str], int | None]:
    """Return a function that finds the index of a name: exactly, and unless `spellings` is None, by its spellings."""
    exact = {name: i for i, name in enumerate(known)}
    if spellings is None:
        return exact.get
    index = exact | {name: exact[kept] for name, kept in spellings.items() if kept in exact}
    similar: dict[str, set[int]] = defaultdict(set)
    for name, i in index.items():
        words = [plain(name), *(word for synonyms in _SYNONYMS if plain(name) in synonyms for word in synonyms)]
        for word in words:
            similar[word].add(i)
    unique = {word: min(places) for word, places in similar.items() if len(places) == 1}
    return lambda name: index.get(name, unique.get(plain(name)))
