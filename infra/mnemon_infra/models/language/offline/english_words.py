"""Words of the English rules, as parts of patterns."""

from typing import Final

from mnemon_infra.models.language.offline.rule import any_of

KIN: Final = any_of(
    """wife|husband|spouse|partner|fianc[eé]e?|girlfriend|boyfriend|sons?|daughters?|kids?|child(?:ren)?|
    baby|mother|father|mom|mum|dad|parents|brothers?|sisters?|twins?|siblings?|grandmother|grandma|
    granny|grandfather|grandpa|grandparents|grandsons?|granddaughters?|grandkids|uncles?|aunts?|
    cousins?|nephews?|nieces?|(?:mother|father|brother|sister|son|daughter)-in-law|best friend|
    room ?mate|flat ?mate|ex-(?:wife|husband)"""
)
PET: Final = any_of(
    """dogs?|pupp(?:y|ies)|pups?|cats?|kittens?|parrots?|hamsters?|rabbits?|bunny|bunnies|guinea pigs?|
    horses?|pony|goldfish|turtles?|tortoises?|snakes?|lizards?|budgies?|canary|canaries|ferrets?|pets?|
    chickens?"""
)
PROFESSION: Final = any_of(
    """developer|engineer|programmer|teacher|professor|lecturer|doctor|physician|surgeon|dentist|vet|
    veterinarian|nurse|midwife|paramedic|pharmacist|therapist|psychologist|counsellor|counselor|
    social worker|designer|illustrator|lawyer|attorney|solicitor|paralegal|student|intern|manager|
    director|accountant|auditor|architect|scientist|researcher|physicist|chemist|biologist|analyst|
    consultant|writer|author|journalist|editor|translator|interpreter|librarian|chef|cook|baker|barista|
    waiter|waitress|bartender|driver|pilot|flight attendant|sailor|soldier|firefighter|police officer|
    electrician|plumber|carpenter|mechanic|builder|welder|farmer|gardener|florist|artist|painter|
    sculptor|musician|singer|pianist|guitarist|drummer|composer|dancer|actor|actress|photographer|
    filmmaker|hairdresser|stylist|tailor|salesman|saleswoman|salesperson|realtor|founder|entrepreneur|
    freelancer|coach|trainer|tutor|nanny|marketer|recruiter|secretary|assistant|technician|tester|
    administrator|sysadmin|devops|product owner|stay-at-home (?:mom|mum|dad)"""
)
ENTERPRISE: Final = any_of(
    """business|company|shop|store|studio|startup|start-up|bakery|restaurant|cafe|café|agency|farm|
    practice|clinic|salon|blog|channel|podcast|gallery|school"""
)
ILLNESS: Final = any_of(
    """allerg(?:y|ies)|asthma|diabetes|epilepsy|c(?:o)?eliac disease|migraines?|hypertension|arthritis|
    adhd|autism|insomnia|ibs|eczema|psoriasis|high blood pressure|heart (?:condition|disease)|tinnitus|
    vertigo|anxiety disorder|(?:lactose|gluten) intolerance|dyslexia|hay fever|a pacemaker"""
)
DIET: Final = any_of(
    """vegan|vegetarian|pescatarian|diabetic|coeliac|celiac|asthmatic|epileptic|pregnant|colou?r[- ]?blind|
    deaf|teetotal|lactose[- ]intolerant|gluten[- ]intolerant|gluten[- ]free|dyslexic|left[- ]handed|
    hard of hearing"""
)
TONGUE: Final = any_of(
    """English|Russian|German|French|Spanish|Italian|Portuguese|Chinese|Mandarin|Cantonese|Japanese|Korean|
    Ukrainian|Polish|Turkish|Arabic|Hebrew|Hindi|Dutch|Swedish|Finnish|Greek|Czech"""
)
ENGAGEMENT: Final = any_of(
    """appointment|exam|interview|flight|meeting|wedding|trip|conference|concert|surgery|operation|
    presentation|deadline|date|race|marathon|test|class|party|recital|exhibition|show|performance|game|
    match|graduation|birthday|anniversary|holiday|vacation|check-?up|delivery|reunion|retreat|
    tournament|competition"""
)
UNDERTAKEN: Final = any_of(
    """went|visited|started|finished|graduated|bought|signed up|joined|ran|won|lost|got|met|moved|adopted|
    attended|participated|completed|took|passed|failed|gave|had|saw|travell?ed|flew|returned|came back|
    began|quit|celebrated|made|painted|wrote|published|performed|sold|broke|read|hosted|donated|
    volunteered|learned|learnt|built|baked|hiked|camped|applied|launched|opened|hurt|drove|swam|climbed|
    spoke|organi[sz]ed|became|retired"""
)
MONTH: Final = any_of(
    """January|February|March|April|May|June|July|August|September|October|November|December"""
)
ADVERBS: Final = any_of(
    """really|absolutely|just|also|still|always|actually|currently|now|truly|totally|definitely|especially|
    usually|mostly|mainly|recently|finally|both|personally|simply|never|originally|already|generally|
    all|so|very|quite|officially|happily|very much"""
).join(("(?:", " )*"))
"""Any number of adverbs, each with a space after it."""

NAMED: Final = any_of(
    r"""it|that|this|these|those|them|they|him|her|his|he|she|their|you|your|yours|how|what|when|where|why|
    who|if|one|both|everything|anything|nothing|something|here|there|so|too|such|a few|a lot|a ton|
    (?:some|most|all) (?:of|the|these|those)|to(?=[.,!]|$)|to (?:hear|see|know|think|say|admit|bother|
    help|share|chat|talk|be honest)|\w+ing (?:\w+ ){0,2}(?:it|them|that|this|these|those|him|her|you|
    here|there)|(?:seeing|hearing|talking|chatting)|(?:an?|the|all|some|any)(?: \w+)? (?:idea|sound|
    look|way|thought|vibe|question|answer|photo|pic|picture)s?|the (?!sea\b|ocean|beach|mountains?\b|
    outdoors|countryside|rain\b|snow|winter|summer|cold\b|heat\b|dark\b|violin|guitar|piano|theat|
    cinema|gym\b|news\b|idea of\b)"""
).join(("(?!", r"\b)"))
"""Lookahead for something named, unlike words that only make sense in context: "it", "the blue one"."""
