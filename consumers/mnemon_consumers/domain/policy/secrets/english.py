"""English descriptions of a credential, as opposed to values: "is too short", "is in the drawer"."""

import re
from typing import Final

from mnemon_consumers.domain.policy.wording import split_word_list

_FUNCTION: Final = split_word_list(
    """a an the this that these those my your his her its our their not no never neither nor none
    nothing something anything everything someone anyone everyone nobody in on at to from for of by
    with without under over behind beside between inside within after before since until because if
    when where while whose which who how why what too very so quite rather really pretty fairly
    extremely almost nearly about around as than then there here yet only even ever also often
    usually sometimes rarely more less most least much many few both either each every all any some
    one two three four five six seven eight nine ten and or but be been being is are was were am do
    does did done has have had having can could will would should shall may might must i you he she
    it we they me him us them up out off down away again still now always just already soon later
    never enough per via like unlike together apart maybe perhaps likely probably definitely
    certainly clearly basically currently soon well"""
)
_DESCRIPTIONS: Final = split_word_list(
    """important strong weak secret wrong safe unsafe long short unknown gone correct incorrect right
    bad good better best worse worst easy hard simple complex complicated difficult tricky secure
    insecure private public personal confidential sensitive invalid valid necessary optional
    mandatory obligatory available unavailable different same identical similar unique random empty
    blank old new outdated fresh recent default temporary permanent case-sensitive obsolete due
    ready okay ok fine great awful terrible ridiculous silly funny absurd obvious trivial minimal
    sufficient annoying inconvenient lost forgotten known written broken stolen hidden kept set
    reset sent given taken told chosen stuck shown seen held put left read made found bound hashed
    memorable alphanumeric numeric visible invisible responsible impossible possible memorised
    memorized another common wifi-only critical essential vital crucial pointless useless useful
    sacred rotten clear everywhere anywhere elsewhere nowhere sometime plain encrypted up-to-date
    identical lengthy medium poor decent robust terse cryptic unreadable illegible pending active
    inactive ask see check look call contact request required dead live free true false real fake
    null n/a guest-only hers mine yours ours theirs upper lower uppercase lowercase capital
    capitalised capitalized compromised hereditary"""
)
_TIMES: Final = split_word_list(
    """last next ago yesterday today tomorrow tonight recently twice once week month year weeks months
    years day days morning evening night monday tuesday wednesday thursday friday saturday sunday"""
)
_SUBJECTS: Final = split_word_list(
    """knowledge information policy property responsibility problem problems issue issues joke
    nightmare mystery secret luck hygiene security practice nonsense protection business requirement
    requirements feature setting topic thing matter risk question hassle pain barrier manager
    bitwarden keepass lastpass 1password biometrics fingerprint passkey passkeys authentication
    everybody anyone history memory sms help trouble crackdown theft prompt request protected protection"""
)
_SUFFIX: Final = re.compile(
    r".{2,}(?:[^aeiou]ed|[aeiou][a-z]?ed|[^rk]ing|[^i]ly|able|ible|ful|less|ous|ised|ized)$"
)
_NOT_BY_SUFFIX: Final = split_word_list(
    """seed weed speed breed bleed butterfly firefly dragonfly jelly belly lily family italy july kelly
    molly billy table cable bible fable ring wing spring king string viking sterling wedding pudding
    darling lightning bring thing hundred"""
)
_NUMBERS: Final = split_word_list("one two three four five six seven eight nine ten")
_PARTS: Final = split_word_list(
    "characters letters digits symbols words numbers attempts tries times signs capitals"
)
_COUNTED_WORDS: Final = 3
"""Minimum number of words of a value that begins with a number: "three blind mice"."""

_CLAUSE_END: Final = re.compile(
    r"[,;:](?=\s)|[.!?…]+(?=\s|$)|\s[—–-]\s|\s\(|\s(?:and|but|or|because|so|since|although|"
    r"though|while|when|which|for|on|at|"
    r"in|from|as|if|until|unless|like|by|with|after|before|during|last|yesterday|everywhere|too|there|"
    r"here|now|again|since|"
    r"please|btw|instead)\b"
)
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def is_description(word: str) -> bool:
    """Return whether a word describes a credential or belongs to a clause, rather than being a value."""
    lower = word.lower()
    return lower in _FUNCTION or is_quality(lower) or bool(re.search(r"n['’]t$", lower))


def is_quality(lower: str) -> bool:
    """Return whether a lower-case word describes a credential, as an adjective or a participle may."""
    if lower in _DESCRIPTIONS:
        return True
    return lower not in _NOT_BY_SUFFIX and _SUFFIX.fullmatch(lower) is not None


def is_plain_value(text: str, *, follows_colon: bool = False) -> bool:
    """Return whether a text begins with words that can be a password: "sunflower", "correct horse battery".

    After a colon, a phrase may have function words: "tractor under moonlight".
    """
    clause = _CLAUSE_END.split(text.strip(), maxsplit=1)[0]
    words = _WORD.findall(clause)
    if not words or len(words) > 24 or not words[0].isascii():
        return False
    lower = [word.lower() for word in words]
    if lower[-1] in _SUBJECTS or (lower[0] in _SUBJECTS and len(words) < 3):
        return False
    if follows_colon and len(words) >= _COUNTED_WORDS and lower[0] in _NUMBERS:
        return lower[1] not in _PARTS and is_plain_value(" ".join(words[1:]))
    if lower[0] in _FUNCTION or (not follows_colon and any(word in _FUNCTION for word in lower)):
        return False
    if any(re.search(r"['’]s$|s['’]$", word) for word in words):
        return False
    if is_quality(lower[0]):
        return (
            lower[0] in _DESCRIPTIONS
            and len(words) >= 3
            and not any(is_quality(word) or word in _TIMES for word in lower[1:])
        )
    if is_quality(lower[-1]) and len(words) < 4:
        return False
    return len(lower[0]) >= 3
