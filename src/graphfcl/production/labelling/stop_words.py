"""English stop words. Models use them as features, but descriptions for people leave them out."""

WORDS = """
a about above after again all also although am an and any are as at be because been before being below between both but
by can cannot could did do does doing down during each either etc few for from further had has have having he her here
hers him his how however i if in into is it its itself just may me might more most much must my neither no nor not now
of off on once only onto or other our out over own per same shall she should since so some such than that the their them
then there these they this those though through thus to too under until up upon us very via was we were what when where
whether which while who whom whose why will with within without would yet you your
"""
STOP_WORDS = frozenset(WORDS.split())


def explains(feature: object) -> bool:
    """Return whether the name of a feature says something."""
    return str(feature).lower() not in STOP_WORDS
