"""Rules of English and Russian: phrases in which people speak of themselves, with the facts to derive.

The files `english.toml` and `russian.toml` contain the rules.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from mnemon_contracts.events.memory import Kind, Tier
from mnemon_infra.models.language.offline.prefilter import PatternPrefilter

Slot = Literal["name", "home", "work", "age", "status"]
"""Properties with one value at a time: a newer value replaces the older one."""


class Rule(NamedTuple):
    """A phrase, and the properties of the fact that is derived from it.

    Attributes:
        pattern: pattern of the phrase; only a match at the beginning of a clause counts.
        importance: importance of the fact, 1 to 10.
        slot: the property of the user that the fact states; None for facts that do not replace each other.
        needs: the date that the sentence must name: 1 for today or later, -1 for today or earlier; 0 if it
            need not name a date.
        ends: True if the phrase says that something has ended.
    """

    name: str
    pattern: re.Pattern[str]
    kind: Kind
    importance: int
    tier: Tier
    slot: Slot | None = None
    needs: Literal[-1, 0, 1] = 0
    ends: bool = False


class ClauseForms(NamedTuple):
    """Forms that decide whether the clauses of a sentence are facts of their own.

    Attributes:
        separator: punctuation marks and words between clauses.
        beginning: first words of a clause that is complete, such as a subject.
        bound: words that bind the clauses of a sentence to each other, such as conditions and pronouns.
        shared: beginnings of a clause that has the pronoun of the clause before it as its subject, without
            words that may be nouns, such as "play" in "a garden and play area".
        unshared: words that may belong to more than the verb after them, such as denials and infinitives.
        introduction: the rule for "I'm Ann", which applies only to the first of several clauses.
    """

    separator: re.Pattern[str]
    beginning: re.Pattern[str]
    bound: re.Pattern[str]
    shared: re.Pattern[str]
    unshared: re.Pattern[str]
    introduction: Rule


class OtherPersonForms(NamedTuple):
    """Forms of one gender: nouns for people other than the author, and verbs in the past tense."""

    noun: re.Pattern[str]
    past: re.Pattern[str]


class LanguageRules(NamedTuple):
    """The rules of a language.

    Attributes:
        rules: the rules in order; the first that matches a sentence applies.
        prefilter: finds the rules that may match a text.
        opening: words without content at the beginning of a sentence.
        joint: words and punctuation marks after which a clause may begin within a sentence.
        hedge: words before a statement that make it doubtful, such as "if", "maybe" or "said".
        request: a clause at the end of a sentence that asks for something, or asks a question.
        closing: a word without content at the end of a sentence.
        task: a request at the beginning of a sentence, such as "translate" or "act as". The sentence and all
            later ones of the message do not count as statements about the author.
        disclaimer: words that say that a sentence is a joke, a figure of speech or not to be saved, at its
            end or at the beginning of the next sentence.
        subject: pronouns and verbs of the first person; matches nothing if `others` is empty.
        others: forms of other people, by gender; empty if verbs of the language always have a subject.
        future: words of a clause that speaks of the future, such as "will" or "starts".
        past: verbs in the past tense, which show that a clause does not speak of the future.
        user: the language's word for a user.
        words: parts of patterns by name, such as `KIN` for relatives.
        remembered: the rule for the words after "Remember: " or "Remember that ", if no other rule matches.
        clauses: forms that decide whether a sentence is split into clauses.
    """

    rules: tuple[Rule, ...]
    prefilter: PatternPrefilter
    opening: re.Pattern[str]
    joint: re.Pattern[str]
    hedge: re.Pattern[str]
    request: re.Pattern[str]
    closing: re.Pattern[str]
    task: re.Pattern[str]
    disclaimer: re.Pattern[str]
    subject: re.Pattern[str]
    others: tuple[OtherPersonForms, ...]
    future: re.Pattern[str]
    past: re.Pattern[str]
    user: str
    words: Mapping[str, str]
    remembered: Rule
    clauses: ClauseForms

    @classmethod
    def load(cls, language: str) -> "LanguageRules":
        """Load the rules of a language from its file, and compile their patterns."""
        source = load_forms(language)
        words: dict[str, str] = {}

        def insert_words(lines: str) -> str:
            contracted = _CONTRACTION.sub(_allow_without_apostrophe, join_lines(lines))
            return _WORD.sub(lambda match: words[match[1]], contracted)

        for name, lines in source["words"].items():
            words[name] = insert_words(lines)

        def compile_rule(rule: Mapping[str, Any]) -> Rule:
            return Rule(**{**rule, "pattern": compile_forms(insert_words(rule["pattern"]))})

        rules = tuple(compile_rule(rule) for rule in source["rules"])
        forms = source["clauses"]
        disclaimer = join_alternatives(insert_words(source["disclaimer"]))
        compiled = {
            name: compile_forms(insert_words(forms[name]))
            for name in ("beginning", "bound", "shared", "unshared")
        }
        return cls(
            rules=rules,
            prefilter=PatternPrefilter([rule.pattern for rule in rules]),
            opening=re.compile(f"(?:{join_lines(source['opening'])}) +", re.IGNORECASE),
            joint=re.compile(join_lines(source["joint"]), re.IGNORECASE),
            hedge=compile_forms(insert_words(source["hedge"])),
            request=re.compile(join_alternatives(source["request"]), re.IGNORECASE),
            closing=re.compile(rf" ?{join_alternatives(source['closing'])}[.!…,)]*$", re.IGNORECASE),
            task=re.compile(insert_words(source["task"]), re.IGNORECASE),
            disclaimer=re.compile(
                rf"(?<![\w'/-])(?<!not )(?<!не ){disclaimer}(?!\w)[\s.!…)]*",
                re.IGNORECASE,
            ),
            subject=compile_forms(source["subject"]),
            others=tuple(
                OtherPersonForms(**{name: compile_forms(forms) for name, forms in other.items()})
                for other in source.get("others", ())
            ),
            future=compile_forms(insert_words(source["future"])),
            past=compile_forms(insert_words(source["past"])),
            user=source["user"],
            words=words,
            remembered=compile_rule(source["remembered"]),
            clauses=ClauseForms(
                separator=re.compile(join_alternatives(forms["separator"]), re.IGNORECASE),
                introduction=compile_rule(source["introduction"]),
                **compiled,
            ),
        )

    def find_candidates(self, text: str) -> Iterator[Rule]:
        """Yield the rules that can match a text, in order."""
        return (self.rules[number] for number in self.prefilter.find_candidates(text))


@cache
def load_forms(language: str) -> Mapping[str, Any]:
    """Return the content of the TOML file of a language, `english` or `russian`."""
    return tomllib.loads(Path(__file__).with_name(f"{language}.toml").read_text("utf-8"))


_WORD: Final = re.compile(r"\{([A-Z_]+)\}")
"""Name in braces, which refers to an entry of `words` in a pattern; `{2}` remains a quantifier."""

_CONTRACTION: Final = re.compile(r"I'm\b|(?<=[a-z]n)'t\b|'ve\b")
"""Contraction that people often write without the apostrophe; "we're" or "I'll" would be other words."""


def _allow_without_apostrophe(contraction: re.Match[str]) -> str:
    without = contraction[0].replace("'", "").lower()  # "I'm" and "im" have no first letter to share
    return f"(?:{contraction[0]}|{without})"


def join_lines(lines: str) -> str:
    """Return the lines of a pattern as one, without the white space around them."""
    return "".join(line.strip() for line in lines.splitlines())


def join_alternatives(lines: str) -> str:
    """Return alternatives, which `|` separates on one or more lines, as a group for use in a pattern."""
    return f"(?:{join_lines(lines)})"


def compile_forms(lines: str) -> re.Pattern[str]:
    """Return a pattern for the alternatives at the beginning of a word, regardless of letter case."""
    return re.compile(rf"(?<![\w'-]){join_alternatives(lines)}", re.IGNORECASE)


ENGLISH: Final = LanguageRules.load("english")
RUSSIAN: Final = LanguageRules.load("russian")
