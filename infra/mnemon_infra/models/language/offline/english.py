"""English forms in which people speak of themselves; for text with straight apostrophes and single spaces."""

import re
from typing import Final

from mnemon_infra.models.language.offline.english_words import (
    ADVERBS,
    DIET,
    ENGAGEMENT,
    ENTERPRISE,
    ILLNESS,
    KIN,
    MONTH,
    NAMED,
    PET,
    PROFESSION,
    TONGUE,
    UNDERTAKEN,
)
from mnemon_infra.models.language.offline.rule import LanguageRules, Rule, any_of, forms

_HAVE: Final = r"(?:'ve| have)?(?: got)? "
_I: Final = rf"I {ADVERBS}"
_WE: Final = rf"(?:I|we) {ADVERBS}"
_AM: Final = rf"(?:I'm|I am|im) {ADVERBS}"
_HAVE_DONE: Final = rf"(?:I've|I have|I|we've|we have|we) {ADVERBS}"
_NAME: Final = r"(?-i:[A-Z])[\w'-]+"
_PLACE: Final = r"(?-i:[A-Z])\w"
_SO_MANY: Final = r"(?:an?|one|two|three|four|five|six|seven|another|our|twin|\d{1,2})"
_NOT_A_NAME: Final = r"(?!(?:not|on|in|an?|the|too|so|very)\b)"

_NAME_GIVEN: Final = forms(
    rf"""my (?:full |first |last |real |middle )?name(?:'s| is) {_NOT_A_NAME}{_NAME}|
    my (?:full |first |last )?name is {_NOT_A_NAME}\w+(?=[.!,]|$)"""
)
_CALLED: Final = forms(
    rf"""(?:please |just |you can |everyone |people |(?:my )?friends )*calls? me (?!\w+day\b){_NAME}|
    {_AM}(?:called|named) {_NAME}|
    I go by {_NAME}|
    my (?:nickname|pronouns) (?:is|are) """
)
_HEALTH: Final = forms(
    rf"""{_AM}(?:\w+ )?(?:allergic|intolerant) to {NAMED}|
    I{_HAVE}(?:a |an )?(?:\w+ ){{0,3}}{ILLNESS}\b|
    {_AM}(?:an? )?(?:strict )?{DIET}\b|
    I {ADVERBS}(?:can't|cannot|can not) (?:eat|drink|have) {NAMED}(?!(?:much|enough|any ?more|right|
    now|yet|today|a|lunch|dinner|breakfast)\b)\w|
    {_HAVE_DONE}(?:was |were |been )?(?:just |recently )?diagnosed with |
    my blood (?:type|group) is |
    I wear (?:glasses|contact lenses|contacts|a hearing aid|hearing aids)|
    {_I}take (?:insulin|medication|antidepressants|blood thinners)"""
)
_WISHES: Final = forms(
    rf"""(?:please )?(?:always |never |from now on,? )(?:please )?(?:answer|reply|respond|write|call|
    address|speak|use|explain|keep|send me|give me)\b|
    (?:please )?(?:answer|reply|respond|write|speak|talk)(?: to me)?(?: only)? in {TONGUE}\b|
    (?:please )?keep your (?:answers|replies|messages) \w+"""
)
_NO_LONGER: Final = forms(
    rf"""I (?:no longer|don't .{{2,60}} any ?more|do not .{{2,60}} any ?more)|
    (?:I'm|I am) (?:no longer|not .{{2,60}} any ?more)|
    {_HAVE_DONE}(?:stopped|quit|gave up|given up) (?!(?:my |the |a )?(?:job|position)\b)\w+|
    {_HAVE_DONE}(?:quit|left|lost) my (?:\w+ ){{0,2}}(?:job|position)\b"""
)
_HOME: Final = forms(
    rf"""{_WE}(?:live|reside) {ADVERBS}(?:in|near|outside|just outside) (?:the )?(?:\w+ of )?{_PLACE}|
    {_AM}(?:living|residing|based) in {_PLACE}|
    {_HAVE_DONE}moved (?:back )?(?:from {_NAME} )?to {_PLACE}"""
)
_ORIGIN: Final = forms(
    rf"""{_WE}(?:live|reside) (?:in|near|on|at|by|with|outside|close to|next to) {NAMED}(?!the)\w|
    {_WE}live alone|
    {_AM}from (?:the )?{_PLACE}|
    I (?:come|hail) from (?:the )?{_PLACE}|
    I was (?:born and raised|born|raised) in {_PLACE}|
    {_I}grew up (?:in|on|near) |
    {_HAVE_DONE}moved (?:here )?(?:from|into) {NAMED}(?:my |a |an |our )?\w|
    my (?:hometown|home town|home country|time ?zone) is """
)
_WORK: Final = forms(
    rf"""{_I}(?:work|started working|started work) (?:as|at|for|in) {NAMED}\w|
    {_AM}(?:working|employed) (?:as|at|for|in) {NAMED}\w|
    {_AM}an? (?:[\w-]+ ){{0,3}}{PROFESSION}\b(?! (?:at heart|of (?:it|this|that)))|
    my (?:job|profession|occupation|day job|job title) is |
    {_HAVE_DONE}(?:got|landed|started|accepted|found) (?:a |my |the )(?:new |first |dream )*(?:job|
    position|internship|role) (?:as|at|in|with|for) """
)
_OCCUPATION: Final = forms(
    rf"""{_I}work (?:part-time|full-time|remotely|from home|nights|night shifts|shifts|freelance)|
    {_AM}(?:self-employed|unemployed|retired|freelancing|between jobs)|
    {_WE}(?:own|run|started|founded|manage|have) (?:an?|my own|our own|my|
    our) (?:[\w-]+ ){{0,3}}{ENTERPRISE}\b|
    {_I}teach (?!you|him|her|them|me|my)\w|
    {_I}study (?!for|the|this|that|it|hard)\w|
    {_AM}(?:studying|majoring in|doing (?:a|my) (?:degree|PhD|
    master))(?! for| the| this| it| hard)\b|
    {_I}graduated (?:from|in|with) |
    {_HAVE_DONE}(?:got|landed|started|accepted|found) (?:a |my |the )(?:new |first |dream )*(?:job|
    position|internship)\b|
    I (?:was|got) (?:promoted|fired|laid off)|
    {_I}volunteer (?:at|with|for|as) """
)
_STATUS: Final = forms(
    rf"""{_AM}(?:newly )?(?:married|divorced|single|engaged|widowed|
    separated)\b(?! ?-| in\b| with\b| out\b)|
    {_HAVE_DONE}(?:got|gotten) (?:married|engaged|divorced)"""
)
_AGE: Final = forms(
    r"""(?:I'm|I am|I turned|I just turned|I've turned|
    I've just turned) (?:now )?\d{1,2}(?= (?:years old|years of age|yo|and|now|last|this|today|
    yesterday)\b|[,.!]|$)"""
)
_BIRTHDAY: Final = forms(
    rf"""my birthday(?:'s| is) (?!coming|so|party|a\b|here|over|gift|present)|
    I was born (?:on|in) (?:the )?(?:\d|{MONTH})"""
)
_FAMILY: Final = forms(
    rf"""my (?:\w+ ){{0,2}}{KIN},?(?: {_NAME},?)? (?:lives?|works?|studies|speaks?|teaches|died|
    passed away|(?:has |have )?moved|was born|(?:is|are) (?:called|named|a|an|\d+|allergic|from|both|retired|
    married|divorced|pregnant|vegan|vegetarian)|has (?:an?|two|three|four|\d)|plays?|turned \d|
    turns \d|loves?|likes?|hates?|prefers?)\b(?! (?:it|that|this|them|on|so)\b)|
    my (?:\w+ ){{0,2}}{KIN}(?:'s|s') (?:full |first )?(?:names?|birthday) (?:is|are) |
    (?:I|we){_HAVE}(?:{_SO_MANY}|no|some) (?:[\w-]+ ){{0,3}}{KIN}\b|
    {_AM}an? (?:\w+ ){{0,2}}(?:mom|mum|mother|father|dad|parent|grandmother|grandfather|widow|
    widower)\b|
    {_AM}the (?:oldest|eldest|youngest|middle|only) (?:\w+ )?(?:child|of|sister|brother)|
    (?:I'm|I am|we're|we are) (?:expecting|having) a (?:baby|boy|girl|child)|
    my {KIN}(?: {_NAME})? and I (?:are|have|live|moved|got|run|own|adopted|bought|met)\b"""
)
_PETS: Final = forms(
    rf"""(?:I|we)(?:'ve| have)?(?: also| just| recently| now| got| still)* (?:have |own |adopted |
    rescued |got |bought )?{_SO_MANY} (?:[\w-]+ ){{0,3}}{PET}\b|
    (?:my|our) (?:\w+ ){{0,2}}{PET},? (?:(?:is|are) (?:called|named)|(?-i:[A-Z])[a-z]+\b)|
    (?:my|our) (?:\w+ ){{0,2}}{PET}(?:'s|s') names? (?:is|are) |
    (?:my|our) (?:\w+ ){{0,2}}{PET} (?:loves?|likes?|hates?|is (?:an?|\d|allergic)|has an?|died|
    passed away)\b"""
)
_TASTE: Final = forms(
    rf"""{_WE}(?:like|love|prefer|enjoy|hate|dislike|adore|can't stand|cannot stand|don't like|
    do not like|don't enjoy|don't eat|do not eat|don't drink|do not drink|eat no|drink no|detest|
    despise) {NAMED}\w|
    {_AM}(?:not )?(?:an? )?(?:big |huge |massive |real |great |lifelong )*(?:fan of|fond of|into|
    keen on|passionate about|crazy about|obsessed with|interested in|addicted to) {NAMED}\w|
    {_AM}(?:not )?an? (?:\w+ )?(?:morning person|night owl|early bird|dog person|cat person|
    coffee drinker|tea drinker|introvert|extrovert|bookworm|foodie|gamer|perfectionist|minimalist|
    runner|climber|hiker|cyclist|swimmer|surfer|collector)\b|
    my (?:all-time |absolute |new |current |least )*favou?rites? (?:[\w'-]+ ){{1,4}}(?:is|
    are) {NAMED}\w|
    my (?:main |biggest |only |new |favou?rite )*(?:hobby|hobbies|passions?|interests|pastime|
    dream job|guilty pleasure) (?:is|are|include)\b|
    I (?!(?:love|miss|have|need|want|feel|see|am|think|hear|
    get)\b)(?:[\w']+ ){{1,5}}(?:every (?:other )?(?:day|morning|
    evening|night|week|weekend|month|summer|winter|\w+day)|(?:once|twice|(?:two|three|four) times) a (?:day|
    week|month|year))\b|
    I (?:always|usually|typically|normally|rarely|never|only) (?:wake up|get up|go to bed|eat|drink|
    use|wear|travel|fly|drive|cook|run|read|watch|listen to|play|buy|order) {NAMED}\w"""
)
_SKILLS: Final = forms(
    rf"""{_I}speak (?:(?:fluent|some|a little|a bit of|good|native|both|basic) )*{TONGUE}|
    my (?:native|first|mother|second) (?:language|tongue) is |
    {_I}(?:play|code in|program in) (?:the )?{NAMED}(?!with\b|a (?:role|part|game)\b|games? with)\w|
    {_AM}learning {NAMED}(?!more|about|from|a)\w|
    {_I}(?:drive|ride|own) (?:an? |my own )\w|
    I (?:can't|cannot|don't know how to) (?:drive|swim|cook|ride)\b|
    (?:I've|I have) been (?:playing|learning|studying|practi[cs]ing|painting|running|working|living|
    dancing|writing|cooking|collecting|teaching|singing|married|vegan|vegetarian) {NAMED}
    (?!(?:on )?(?:for|since)\b).* (?:for|since) (?:\w+ )*(?:\d|years?\b|months?\b|childhood|school)|
    {_WE}(?:own|have|bought) (?:an?|our own|my own) (?:[\w-]+ ){{0,2}}(?:house|flat|apartment|
    cottage|cabin|boat|car|van|motorbike|motorcycle|garden|piano)\b"""
)
_AIMS: Final = forms(
    rf"""my (?:big |main |next |long-term |new year's )*(?:goal|dream|ambition|
    resolution)(?: \w+ \w+)? is (?!not|so|that)\w|
    {_AM}(?:saving (?:up )?for|training for|preparing for|planning (?:to|on|a)|working on|
    trying to (?:learn|quit|lose|save)|going to (?:be|become) an?|writing a (?:book|novel|
    thesis)) (?!it\b|that\b|this\b|them\b|few\b|lot\b|here\b)\w"""
)
_PLANS: Final = forms(
    rf"""(?:I'm|I am|we're|we are) (?:\w+ )?(?:going|planning|flying|travell?ing|moving|visiting|starting|
    getting|having|meeting|leaving|seeing|driving|taking|attending|running|giving|hosting|performing|
    competing)\b|
    (?:I'll|we'll|I will|we will) (?:be|go|visit|fly|meet|have|take|start|move)\b|
    (?:I|we){_HAVE}(?:an?|my|our|the) (?:[\w-]+ ){{0,3}}{ENGAGEMENT}\b|
    (?:my|our) (?:[\w'-]+ ){{0,3}}{ENGAGEMENT}(?:'s| is| are) |
    my (?:\w+ )?{KIN}(?: {_NAME})? (?:is|are) (?:coming|visiting|arriving|getting|moving|flying)\b"""
)
_EVENTS: Final = forms(
    rf"""{_HAVE_DONE}{UNDERTAKEN}\b(?! (?:it|them|that|this|your)\b)(?!.*\b(?:here|there)\b)|
    my (?:\w+ )?{KIN}(?: {_NAME})? {UNDERTAKEN}\b(?! (?:it|them|that|this)\b)|
    (?:I|we) (?:was|were) (?:in|at|on) (?!it\b|that\b|this\b|my way\b)"""
)

ENGLISH: Final = LanguageRules(
    rules=(
        Rule(_NAME_GIVEN, "user_fact", 9, "profile", "name"),
        Rule(_CALLED, "user_fact", 9, "profile"),
        Rule(_HEALTH, "user_fact", 9, "profile"),
        Rule(_WISHES, "preference", 8, "profile"),
        Rule(_NO_LONGER, "user_fact", 6, "profile", ends=True),
        Rule(_HOME, "user_fact", 7, "profile", "home"),
        Rule(_ORIGIN, "user_fact", 6, "profile"),
        Rule(_WORK, "user_fact", 7, "profile", "work"),
        Rule(_OCCUPATION, "user_fact", 7, "profile"),
        Rule(_STATUS, "user_fact", 7, "profile", "status"),
        Rule(_AGE, "user_fact", 7, "profile", "age"),
        Rule(_BIRTHDAY, "user_fact", 7, "profile"),
        Rule(_FAMILY, "user_fact", 7, "profile"),
        Rule(_PETS, "user_fact", 6, "profile"),
        Rule(_TASTE, "preference", 6, "profile"),
        Rule(_SKILLS, "user_fact", 5, "profile"),
        Rule(_PLANS, "event", 6, "working", needs=1),
        Rule(_AIMS, "user_fact", 5, "working"),
        Rule(_EVENTS, "event", 5, "archive", needs=-1),
    ),
    opening=re.compile(
        any_of(
            r"""(?:hi|hey|hello|hiya|thanks|thank you|wow|good (?:morning|evening|afternoon))
            (?:[ ,]+(?-i:[A-Z])\w+)?[,!.:…-]+|
            (?:no|right|great|nice|cool|awesome|sure|sorry|congrats|exactly|absolutely|definitely|totally|
            agreed|
            lol|haha|of course|glad to hear it|sounds good|(?-i:[A-Z])[a-z]+)[,!…]+(?= (?:I|my|we|our)\b)|
            (?:yes|yeah|yep|yup|nope|oh|ah|aww?|hmm+|well|so|ok|okay|and|but|also|anyway|btw|by the way|
            actually|honestly|fyi|you know|i mean|to be honest|for me|as for me|like|plus|in fact|lately|
            recently)\b[,.!:…]*"""
        )
        + " +",
        re.IGNORECASE,
    ),
    joint=re.compile(
        r"(?:[,;:(–—]|\s-|\b(?:and|but|so|because|since|as|plus|that|also|now|though|'?cause|where|yes|yeah))\s*$",
        re.IGNORECASE,
    ),
    hedge=forms(
        r"""(?:translate|rewrite|correct|grammar|sentence|phrase|text|quote|title|if|wish|imagine|suppose|
        pretend|unless|whether|hypothetically|as though|says?|said|told|asked|
        thinks?|thought|joke|joking|example|until|would|could|might|maybe|perhaps|what|how|when|while|
        before|once)\b"""
    ),
    request=re.compile(
        any_of(
            r"""(?:[,;–—]| -)\s*(?:(?:so|and|but|please|can|could) )*
            (?:(?:can|could|would|will|should|do|does|did|is|are|any|have|what|where|which|how|who|when|why|
            shall) [^,;]*\?|(?:please|suggest|recommend|help|give|tell|write|find|show|explain|
            make)\b.*)$"""
        ),
        re.IGNORECASE,
    ),
    user="User",
)
