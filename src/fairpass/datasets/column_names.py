"""What names say: of a column about its role, of a label about which is the positive one; in several languages."""

import re
import unicodedata
from collections.abc import Sequence

LABEL_WORDS = (
    *("label", "target", "y", "class", "outcome", "decision", "result", "default", "approved", "granted", "hired"),
    *("accepted", "admitted", "paid", "repaid", "churn", "churned", "fraud", "recidivism", "recid", "status"),
    *("entscheidung", "ergebnis", "zielwert", "decision", "resultat", "etiquette", "resultado", "etiqueta"),
)
SENSITIVE_WORDS = (
    *("sex", "gender", "race", "ethnicity", "ethnic", "religion", "nationality", "citizenship", "foreign"),
    *("minority", "disability", "disabled", "handicap", "orientation", "marital", "married", "age"),
    *("geschlecht", "herkunft", "nationalitat", "staatsangehorigkeit", "behinderung", "konfession", "alter"),
    *("sexe", "genre", "nationalite", "origine", "ethnie", "sexo", "genero", "raza", "raca", "nacionalidad"),
    *("nacionalidade", "etnia", "sesso", "genere", "nazionalita", "geslacht", "nationaliteit", "afkomst"),
    *("origin", "birth", "birthdate", "birthday", "birthplace", "dob", "born", "geburtsdatum", "naissance", "edad"),
    *("pregnant", "pregnancy", "veteran", "caste", "skin", "immigrant", "native", "language", "pronoun", "pronouns"),
)
ID_WORDS = (
    *("id", "ids", "node", "key", "uid", "uuid", "name", "number", "no", "nr", "nummer", "kennung", "personalnummer"),
    *("kundennummer", "matricule", "identifiant", "numero", "codigo"),
)
END_WORDS = ("source", "target", "from", "to", "src", "dst", "one", "other", "a", "b", "u", "v")
WEIGHT_WORDS = (
    *("weight", "weights", "w", "strength", "count", "counts", "amount", "score", "frequency", "freq", "times"),
    *("intensity", "similarity", "gewicht", "poids", "peso"),
)

# What a column with names of people is called, as a whole.
_PERSONS_NAMES = (
    *("name", "names", "surname", "forename", "firstname", "lastname", "fullname", "nachname", "vorname", "nom"),
    *("prenom", "nombre", "apellido", "apellidos", "cognome", "nome", "achternaam", "voornaam"),
    *("first name", "last name", "full name", "given name", "family name", "middle name", "employee name"),
)
# What people ask for, and what they do not.
_WANTED = (
    *(
        "approved",
        "accepted",
        "granted",
        "admitted",
        "hired",
        "yes",
        "true",
        "good",
        "paid",
        "repaid",
        "passed",
        "high",
    ),
    *("over", "success", "positive", "genehmigt", "bewilligt", "angenommen", "ja", "oui", "si", "accepte", "accorde"),
)
_UNWANTED = (
    *("declined", "rejected", "refused", "denied", "no", "not", "false", "bad", "unpaid", "failed", "low", "under"),
    *("negative", "abgelehnt", "nein", "non", "refuse", "rechazado", "rifiutato"),
)


def words_of(name: str) -> list[str]:
    """Return the words in a name, in lower case without accents: "GoodCustomer_id" has good, customer and id."""
    plain = "".join(mark for mark in unicodedata.normalize("NFKD", name) if not unicodedata.combining(mark))
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", plain)]


def named(name: str, words: Sequence[str]) -> float:
    """Return how likely a name is, between 0 and 1, by which of the words it begins or ends with."""
    parts = words_of(name)
    places = [words.index(word) for word in {*parts[:1], *parts[-1:]} if word in words]
    return 1 - min(places) / len(words) if places else 0.0


def names_people(name: str) -> bool:
    """Return whether a column is called like names of people; "company name" is not."""
    return " ".join(words_of(name)) in _PERSONS_NAMES


def positive_of(values: Sequence[str]) -> str:
    """Return which of two labels people most likely ask for; the larger one if their words do not say."""
    for value, other in (values[:2], values[1::-1]):
        if not {*words_of(value)}.isdisjoint(_WANTED) and {*words_of(value)}.isdisjoint(_UNWANTED):
            return value
        if not {*words_of(other)}.isdisjoint(_UNWANTED):
            return value
    return max(values)
